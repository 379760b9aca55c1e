#!/usr/bin/env python3
"""Leaves out every sync and every cut of the log, one at a time: a test must notice each (rule T3).

Finds the calls in crates/log/src; one without a name (the macro `site!`) fails. Builds the tests once with
the feature `mutants`, runs the tests named below as they are, which must pass, and then once a mutant, which
must fail by an assertion of that test. Prints a table and, as last line, the counts; a survivor fails.
"""

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LOG = REPOSITORY / "crates" / "log"

# What brings data or names to the disk, or cuts a file. `truncate` of a vector is neither.
CALL = re.compile(r"(?<!fn )\b(?:sync_data|sync_all|sync_dir|sync_parent|sync|fdatasync|fsync|set_len)\(")
SITE = re.compile(r'\bsite!\(\s*"([^"]+)"\s*,')
# A mutant that waits for ever is not killed.
PATIENCE = 120

# Which test of which test program notices that the call is left out.
KILLERS = {
    "archive.folder": "model copies::what_retention_removed_is_in_the_archive_whenever_the_power_goes",
    "aside.folder": "model syncs::what_is_cut_with_batches_behind_it_is_kept_aside_before_it_goes",
    "backup.begun": "model copies::an_interrupted_backup_leaves_the_one_before_and_goes_on",
    "backup.folder": "model copies::an_interrupted_backup_leaves_the_one_before_and_goes_on",
    "backup.topic": "model copies::a_backup_is_there_once_it_is_done",
    "catalog.folder": "model syncs::a_topic_is_there_once_it_was_made",
    "clean_mark.folder": "model syncs::a_mark_of_a_clean_end_does_not_come_back",
    "closed.folder": "model syncs::a_closed_log_is_on_disk_whole",
    "copied.data": "model copies::a_backup_is_there_once_it_is_done",
    "copied.partition": "model copies::a_backup_is_there_once_it_is_done",
    "copied.segment": "model copies::a_backup_is_there_once_it_is_done",
    "cut.data": "model faults::a_failed_sync_poisons_until_the_partition_reopens_itself",
    "cut.folder": "model faults::a_segment_of_a_failed_roll_does_not_come_back_behind_a_cut",
    "directory.folder": "model faults::a_topic_that_was_half_made_or_half_removed_is_gone_after_the_start",
    "directory.parent": "model syncs::the_folders_above_a_new_one_are_there",
    "file.data": "model syncs::a_topic_is_there_once_it_was_made",
    "file.folder": "model syncs::a_producer_id_is_given_once",
    "finish.data": "model syncs::what_a_roll_shows_is_there",
    "finish.offset_index": "model syncs::the_indexes_of_a_closed_segment_are_there",
    "finish.time_index": "model syncs::the_indexes_of_a_closed_segment_are_there",
    "finish.transaction_index": "model syncs::the_aborted_transactions_of_a_closed_segment_are_there",
    "flush.data": "model syncs::what_was_flushed_is_there",
    "found_start.folder": "model faults::a_log_start_from_the_page_cache_is_safe_before_segments_go",
    "growth_cleared.folder": "model growth::what_is_left_of_new_partitions_is_cleared_away_before_it_is_forgotten",
    "index.cut": "model faults::a_write_that_fails_half_way_is_taken_back",
    "index.data": "model syncs::the_indexes_of_a_closed_segment_are_there",
    "log_start.folder": "model syncs::an_interrupted_deletion_leaves_no_hole",
    "new_directory.parent": "model syncs::a_folder_that_was_made_for_the_log_is_there",
    "parent.folder": "model syncs::a_topic_is_there_once_it_was_made",
    "partition_made.folder": "model faults::a_topic_that_was_half_made_or_half_removed_is_gone_after_the_start",
    "place.folder": "model syncs::a_new_segment_is_there_with_what_was_flushed_into_it",
    "private.parent": "model copies::a_backup_is_there_once_it_is_done",
    "probe.data": "model faults::a_failed_sync_poisons_until_the_partition_reopens_itself",
    "real.cut": "recovery a_torn_end_is_cut_behind_the_last_whole_batch",
    "real.data": "real_disk what_was_synced_is_there",
    "real.folder": "real_disk what_was_synced_is_there",
    "recovered.folder": "model syncs::a_segment_found_at_start_is_there_with_what_was_flushed_into_it",
    "removed.folder": "model syncs::an_interrupted_cut_leaves_no_hole",
    "restore.done": "model copies::a_restored_folder_is_there_once_it_is_done",
    "restored.partition": "model copies::a_restored_folder_is_there_once_it_is_done",
    "restored.topic": "model copies::a_topic_whose_restore_was_interrupted_is_gone_and_can_come_again",
    "segment.cut": "model faults::a_write_that_fails_half_way_is_taken_back",
    "segment.data": "model syncs::what_was_flushed_is_there",
    "segment_made.folder": "model syncs::a_new_segment_is_there_with_what_was_flushed_into_it",
    "settle.copy": "model faults::a_partition_that_the_disk_refused_at_start_comes_back_by_itself",
    "settle.data": "model syncs::what_a_start_shows_is_there",
    "swap.folder": "model swaps::a_pass_that_the_power_ends_leaves_the_old_or_the_new",
    "swap_found.folder": "model swaps::a_start_that_ends_a_swap_may_be_interrupted_as_well",
    "swap_seen.folder": "model swaps::a_start_after_a_kill_removes_nothing_before_what_replaces_it_is_safe",
    "swap_indexes.folder": "model swaps::a_pass_that_the_power_ends_leaves_the_old_or_the_new",
    "topic_grown.folder": "model growth::a_topic_that_was_half_grown_has_what_it_had_or_all",
    "topic_made.folder": "model faults::a_topic_that_was_half_made_or_half_removed_is_gone_after_the_start",
    "topic_removed.folder": "model faults::a_topic_that_was_half_made_or_half_removed_is_gone_after_the_start",
    "torn.cut": "recovery a_torn_end_is_cut_behind_the_last_whole_batch",
    "unclean_epoch.folder": "model syncs::an_epoch_of_an_unclean_start_is_given_once",
}


def code_of(path):
    """The text of a source file with comments and unit tests blanked, line by line."""
    code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), path.read_text())
    return code.split("#[cfg(test)]")[0]


def macro_end(code, start):
    """The position behind the parenthesis that closes the one at `start`."""
    depth = 0
    for position in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            return position + 1
    raise ValueError("a parenthesis is never closed")


def call_sites():
    """(name, file:line) of every call; the name is None where there is none."""
    found = []
    for path in sorted((LOG / "src").rglob("*.rs")):
        code = code_of(path)
        spans = [(site.start(), macro_end(code, code.index("(", site.start())), site[1]) for site in SITE.finditer(code)]
        for call in CALL.finditer(code):
            names = [name for start, end, name in spans if start < call.start() < end]
            place = f"{path.relative_to(REPOSITORY)}:{code.count(chr(10), 0, call.start()) + 1}"
            found.append((names[0] if names else None, place))
    return found


def complaints(sites):
    """What is wrong with the names."""
    names = [name for name, _ in sites]
    wrong = [f"{place}: a sync or a cut without site!" for name, place in sites if name is None]
    wrong += [f"{place}: the name {name} stands twice" for name, place in sites if name and names.count(name) > 1]
    wrong += [f"{place}: {name} has no test in KILLERS" for name, place in sites if name and name not in KILLERS]
    return wrong + [f"KILLERS: there is no call named {name}" for name in KILLERS if name not in names]


def build():
    """Builds the test programs; their paths by name."""
    # As for the whole workspace, so that what `make test` has built is not built again.
    command = ["cargo", "test", "--workspace", "--features", "highwater-log/mutants", "--locked", "--no-run"]
    command += [f"--test={program}" for program in sorted({killer.split()[0] for killer in KILLERS.values()})]
    command.append("--message-format=json-render-diagnostics")
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}


def run(programs, killer, mutant=None):
    """Runs a test; (exit code, what it printed), None for the code after a time-out."""
    program, test = killer.split()
    environment = os.environ | {"HW_MUTANT": mutant or "", "RUST_BACKTRACE": "0"}
    command = [programs[program], "--exact", test]
    try:
        done = subprocess.run(
            command, cwd=LOG, env=environment, encoding="utf-8", errors="replace", timeout=PATIENCE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


def passed(result):
    """Whether exactly that one test ran, and passed."""
    return result[0] == 0 and "test result: ok. 1 passed" in result[1]


def is_killed(killer, result):
    """Whether the test failed, and by an assertion of its own."""
    code, output = result
    panic = re.search(rf"thread '{re.escape(killer.split()[1])}'[^\n]* panicked at ([^:\n]+):(\d+):", output)
    if code != 101 or not panic:
        return False
    path = next((path for path in (REPOSITORY / panic[1], LOG / panic[1]) if path.exists()), None)
    if not path or "tests" not in path.parts:
        return False
    line = path.read_text().splitlines()[int(panic[2]) - 1]
    return line.strip().startswith("assert")


def main():
    """Checks the names, then runs the mutants."""
    sites = call_sites()
    wrong = complaints(sites)
    if wrong:
        print("\n".join(wrong))
        return 1
    programs = build()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        tests = sorted(set(KILLERS.values()))
        results = pool.map(lambda test: (test, run(programs, test)), tests)
        broken = [(test, output) for test, (code, output) in results if not passed((code, output))]
        for test, output in broken:
            print(f"{test} does not pass as it is:\n{output}")
        if broken:
            return 1
        places = dict(sites)

        def judge(item):
            started = time.monotonic()
            result = run(programs, item[1], item[0])
            return item[0], is_killed(item[1], result), result[1], time.monotonic() - started

        survived = 0
        for (name, killed, output, seconds) in pool.map(judge, KILLERS.items()):
            survived += not killed
            print(f"{'killed' if killed else 'SURVIVED':9}{seconds:6.1f} s  {name:22} {places[name]:40} {KILLERS[name]}")
            if not killed:
                print(output)
    counts = {"call_sites": len(sites), "mutants": len(KILLERS), "killed": len(KILLERS) - survived, "survived": survived}
    print(json.dumps(counts, separators=(",", ":")))
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
