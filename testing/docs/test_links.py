"""Each kind of broken link, once."""

import os
import tempfile
import unittest

import links


class Book(unittest.TestCase):
    """Links of built pages."""

    def broken(self, body):
        """What is said of a page with this body, beside a page with one anchor."""
        with tempfile.TemporaryDirectory() as folder:
            links.BOOK = folder
            os.mkdir(os.path.join(folder, "how-to"))
            for name, text in {"how-to/page.html": body, "other.html": '<h1 id="there">x</h1>'}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(links.broken_in_book(links.book_pages()))

    def test_links_that_lead_somewhere(self):
        for link in ("../other.html", "../other.html#there", "https://example.com/x", "#own", "mailto:a@b.c"):
            self.assertEqual(self.broken(f'<a id="own" href="{link}">x</a>'), [], link)

    def test_links_that_lead_nowhere(self):
        for link in ("other.html", "../other.html#here", "#own", "../how-to"):
            self.assertEqual(len(self.broken(f'<a href="{link}">x</a>')), 1, link)

    def test_an_image_that_is_not_there(self):
        self.assertEqual(len(self.broken('<img src="a.png">')), 1)


class Anchors(unittest.TestCase):
    """The anchors of pages beside the book."""

    def test_they_are_made_as_they_are_shown(self):
        self.assertEqual(links.anchor_of("What is `promised`, and not"), "what-is-promised-and-not")


if __name__ == "__main__":
    unittest.main()
