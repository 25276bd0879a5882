"""The browser of these tests: the Chromium that the system has, with a fresh profile each time."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Final

from playwright.sync_api import Browser, BrowserContext, sync_playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")

OPTIONS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

DESKTOP: Final = (1360, 900)
PHONE: Final = (390, 844)


def executable() -> str | None:
    """Where Chromium is; None where the system has none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """A running browser, gone when the block ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


def context(
    browser: Browser, size: tuple[int, int] = DESKTOP, *, dark: bool = False, scale: float = 1.0
) -> BrowserContext:
    """A window without a past. Nothing moves in it, so that a picture shows what is there."""
    width, height = size
    return browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        device_scale_factor=scale,
        locale="en-GB",
    )
