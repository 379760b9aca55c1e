#!/usr/bin/env python3
"""Checks every link inside the documentation; addresses elsewhere are not fetched.

The built book (target/book) is checked as a browser sees it: pages, anchors, images. The pages beside
it (README.md and the like) are checked as they stand. Every page must also be in SUMMARY.md, or
mdBook would leave it out.
"""

import html.parser
import os
import re
import sys
import urllib.parse

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCS = os.path.join(REPOSITORY, "docs")
BOOK = os.path.join(REPOSITORY, "target", "book")
BESIDE = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
MARKDOWN_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


class Page(html.parser.HTMLParser):
    """The links and anchors of one page."""

    def __init__(self):
        super().__init__()
        self.links, self.anchors = [], set()

    def handle_starttag(self, _tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def files_below(folder, ending):
    """The files with this ending, by their path inside the folder."""
    for parent, _folders, names in os.walk(folder):
        for name in names:
            if name.endswith(ending):
                yield os.path.relpath(os.path.join(parent, name), folder)


def is_elsewhere(link):
    """Whether a link leaves the documentation."""
    return bool(urllib.parse.urlsplit(link).scheme) or link.startswith("//")


def anchor_of(heading):
    """The anchor that a heading of Markdown gets."""
    text = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return text.replace(" ", "-")


def read(path):
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def book_pages():
    """Every page of the built book."""
    pages = {}
    for path in files_below(BOOK, ".html"):
        page = Page()
        page.feed(read(os.path.join(BOOK, path)))
        pages[path] = page
    return pages


def broken_in_book(pages):
    """What the links of the book miss."""
    # The page for wrong addresses has links from the root of a web server, print.html all of them again.
    for path, page in pages.items():
        if path in ("404.html", "print.html"):
            continue
        for link in filter(lambda link: not is_elsewhere(link), page.links):
            target, _, anchor = link.partition("#")
            target = urllib.parse.unquote(target)
            there = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            if not os.path.isfile(os.path.join(BOOK, there)):
                yield f"{path}: {link} leads nowhere"
            elif anchor and there in pages and urllib.parse.unquote(anchor) not in pages[there].anchors:
                yield f"{path}: {link}: no such anchor"


def broken_beside():
    """What the links of the pages beside the book miss."""
    for name in BESIDE:
        for link in MARKDOWN_LINK.findall(FENCE.sub("", read(os.path.join(REPOSITORY, name)))):
            target, _, anchor = link.partition("#")
            there = os.path.join(REPOSITORY, target or name)
            if is_elsewhere(link):
                continue
            if not os.path.exists(there):
                yield f"{name}: {link} leads nowhere"
            elif anchor and anchor not in map(anchor_of, re.findall(r"^#+ (.*)$", read(there), re.M)):
                yield f"{name}: {link}: no such anchor"


def left_out():
    """Pages that SUMMARY.md does not name."""
    named = set(MARKDOWN_LINK.findall(read(os.path.join(DOCS, "SUMMARY.md"))))
    for path in sorted(set(files_below(DOCS, ".md")) - named - {"SUMMARY.md"}):
        yield f"docs/SUMMARY.md does not name {path}"


def main():
    """Prints what is wrong; the exit code says whether anything was."""
    pages = book_pages()
    problems = [*broken_in_book(pages), *broken_beside(), *left_out()]
    for problem in problems:
        print(problem)
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, {len(problems)} problems")
    sys.exit(1 if problems or not pages else 0)


if __name__ == "__main__":
    main()
