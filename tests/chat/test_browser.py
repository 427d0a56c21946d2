"""Two browser windows with one account, as the people who run it would try: the first is told, and closed."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.chat.conftest import House
from tests.conftest import missing

PAGE = Path(__file__).with_name("page.html")
PATIENCE = 40


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chrome]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing("Chromium")
    assert driver is not None
    options = ChromeOptions()
    options.binary_location = chromium or ""
    for argument in (
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={tmp_path / 'profile'}",
    ):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    started = Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


class Window:
    """One window of the browser, on the page."""

    def __init__(self, browser: Chrome, house: House, name: str, token: str) -> None:
        browser.switch_to.new_window("window")
        self._browser = browser
        self._handle = browser.current_window_handle
        browser.get(
            f"{PAGE.as_uri()}#{urlencode({'ws': f'ws://{house.ws}/ws', 'token': token, 'name': name})}"
        )

    def shows(self, css: str, text: str) -> None:
        self._browser.switch_to.window(self._handle)
        WebDriverWait(self._browser, PATIENCE).until(
            lambda browser: any(text in found.text for found in browser.find_elements(By.CSS_SELECTOR, css)),
            f"{css} does not show {text!r}",
        )

    def says(self, to: int, body: str) -> None:
        self._browser.switch_to.window(self._handle)
        self._browser.find_element(By.ID, "to").send_keys(str(to))
        self._browser.find_element(By.ID, "body").send_keys(body)
        self._browser.find_element(By.CSS_SELECTOR, "button").click()


async def test_of_two_windows_with_one_account_the_first_is_kicked(
    sqlite_house: House, browser: Chrome
) -> None:
    house = sqlite_house
    ann, bob = await house.users(2)
    token = house.token(ann)

    def at_the_screen() -> None:
        first = Window(browser, house, "first", token)
        first.shows("#state", "open")
        first.says(bob, "from the first")
        first.shows("li.ACK", "saved")
        second = Window(browser, house, "second", token)
        second.shows("#state", "open")
        first.shows("li.ERROR", "kicked")
        first.shows("#state", "kicked, closed 1008")
        second.says(bob, "from the second")
        second.shows("li.ACK", "read")
        second.shows("li.SINGLE_CHAT", "welcome")
        second.shows("#state", "open")

    async with house.phone(bob) as at_bob:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(at_the_screen))
            messages = await at_bob.hear_messages(2)
            await at_bob.ack(messages[1], "read")
            await at_bob.say(ann, "welcome")
        assert at_bob.bodies == ["from the first", "from the second"]
