.PHONY: help demo demo-oracle test soak bench-postgres bench-log bench-worker compat compat-connect compat-pipelines mutants-log fuzz docs dist

# Where rustup puts cargo, also in a shell that was open before.
export PATH := $(PATH):$(HOME)/.cargo/bin
# Nothing is written beside the sources.
export PYTHONDONTWRITEBYTECODE := 1

help:
	@echo "make demo          see Highwater capture a database, survive kill -9, and be compared with its"
	@echo "                   source; stays up for you to try things"
	@echo "ONCE=1 make demo   the same, ending after the comparison"
	@echo "KAFKA=apache make demo  the same on Apache Kafka; KAFKA=apache-sasl: over TLS and with a SCRAM login"
	@echo "make demo-oracle   the same for the Oracle source, over a SIMULATED Oracle of two redo threads"
	@echo "make test          everything that is checked: format, lints, tests, the demo and its four breaks"
	@echo "make soak          the proofs of the log in full length: a night; SHARE=100 make soak: a hundredth of it"
	@echo "make mutants-log   leaves out each sync and each cut of the log: a test must notice every one"
	@echo "make fuzz          every parser under cargo-fuzz, MINUTES=10 in all; needs a nightly toolchain"
	@echo "make docs          the documentation as a book, in target/book"
	@echo "make dist          the release as an archive, in target/dist, unpacked and tried"
	@echo "make compat        other people's Kafka clients against the log, cell by cell"
	@echo "make compat-connect  Kafka Connect's own worker and ours, asked the same; ON=apache: on an Apache Kafka each"
	@echo "make compat-pipelines  the same file pipelines through Kafka Connect and ours, byte by byte"
	@echo "make bench-log     the embedded log beside Apache Kafka, in the same run"
	@echo "make bench-worker  a file into a topic and the topic into a file, beside Kafka Connect's worker"
	@echo "make bench-postgres  what a change costs, beside pg_recvlogical and Debezium Engine, in the same run"
	@echo
	@echo "All install what is missing where apt-get may be used, and else say what to install."
	@echo "The demo's variables (SEED, DEMO_EXACTLY_ONCE, DEMO_BREAK, DEMO_KEEP) are explained in testing/demo/demo.py."

demo:
	@testing/install/install.sh $(if $(KAFKA),test)
	@python3 testing/demo/demo.py

demo-oracle:
	@testing/install/install.sh
	@python3 testing/demo/oracle_demo.py

test:
	@testing/install/install.sh test compat
	@python3 testing/test.py

docs:
	@testing/install/install.sh
	@testing/docs/book.sh

dist:
	@testing/install/install.sh
	@packaging/dist.sh
	@packaging/test.sh

soak:
	@testing/install/install.sh test
	@python3 testing/soak.py

mutants-log:
	@testing/install/install.sh test
	@python3 testing/mutants_log.py

fuzz:
	@testing/fuzz/fuzz.sh $(or $(MINUTES),10) $(ENTRIES)

bench-postgres:
	@testing/install/install.sh test
	@python3 testing/bench/drain.py

bench-log:
	@testing/install/install.sh test
	@python3 testing/bench/log.py

bench-worker:
	@testing/install/install.sh test
	@python3 testing/bench/worker.py

compat:
	@testing/install/install.sh test compat
	@python3 testing/compat/compat.py

compat-pipelines:
	@testing/install/install.sh test compat
	@python3 testing/connect/pipelines.py

compat-connect:
	@testing/install/install.sh test
	@python3 testing/connect/connect.py
