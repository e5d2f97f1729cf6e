"""Pages opened in a browser without a window and without a network. Skips where no Chromium is installed."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-extensions",
    "--disable-default-apps",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
]


@dataclass
class Opened:
    dom: str  # after the scripts have run
    console: list[str]  # what they, or the browser about them, had to say

    def elements(self, tag: str) -> list[dict[str, str]]:
        """The attributes of all elements of a kind, with the text in them as `text`."""
        reader = Reader(tag)
        reader.feed(self.dom)
        return reader.found


class Reader(HTMLParser):
    def __init__(self, tag: str):
        super().__init__()
        self.tag, self.found, self.open = tag, [], []

    def handle_starttag(self, tag, attributes):
        if tag == self.tag:
            self.found.append({**dict(attributes), "text": ""})
            self.open.append(self.found[-1])

    def handle_endtag(self, tag):
        if tag == self.tag and self.open:
            self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data


def open_page(path, profile) -> Opened:
    """profile: a folder for what the browser keeps."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    command = [browser, *OPTIONS, f"--user-data-dir={profile}", "--dump-dom", path.resolve().as_uri()]
    # A sanitizer's, which is for us.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0 and done.stdout, done.stderr[-2000:]
    return Opened(done.stdout, re.findall(r":CONSOLE[:(]\d+\)?\] (.*)", done.stderr))
