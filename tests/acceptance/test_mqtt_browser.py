"""mqtt.js, the package's own file, in a browser over WebSocket: it subscribes, hears, and answers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.acceptance.mqtt_server import Broker, broker
from tests.broker.client import Client
from tests.conftest import missing
from tests.faults.process import ROOT

__all__ = ["broker"]

PATIENCE = 60
PAGE = Path(__file__).parent / "pages" / "mqtt.html"
MQTT_JS = ROOT / ".tests" / "npm" / "node_modules" / "mqtt" / "dist" / "mqtt.min.js"


@pytest.fixture(scope="session")
def mqtt_js() -> Path:
    """Where `scripts/setup-tests` puts it."""
    if not MQTT_JS.exists():
        subprocess.run([ROOT / "scripts" / "setup-tests"], check=False, timeout=600)
    if not MQTT_JS.exists():
        missing("mqtt.js")
    return MQTT_JS


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is not ours
        pass


@pytest.fixture
def pages(tmp_path: Path, mqtt_js: Path) -> Iterator[str]:
    """The page and the library on a web server of their own, as an app would have them."""
    folder = tmp_path / "pages"
    folder.mkdir()
    shutil.copy(PAGE, folder)
    shutil.copy(mqtt_js, folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{PAGE.name}"
        server.shutdown()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chrome]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing("Chromium")
    options = ChromeOptions()
    options.binary_location = chromium or ""
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path / 'profile'}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    started = Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


def shows(browser: Chrome, line: str) -> None:
    def there(page: Chrome) -> bool:
        return any(found.text == line for found in page.find_elements(By.CSS_SELECTOR, "#log li"))

    WebDriverWait(browser, PATIENCE).until(there, f"the page does not show {line!r}")


@pytest.mark.parametrize("version", [4, 5])
async def test_mqtt_js_in_a_browser(broker: Broker, pages: str, browser: Chrome, version: int) -> None:
    fragment = urlencode({"url": f"ws://{broker.websocket}/mqtt", "version": version})
    await asyncio.to_thread(browser.get, f"{pages}#{fragment}")
    await asyncio.to_thread(shows, browser, "connected, session present false")
    await asyncio.to_thread(shows, browser, "subscribed")
    async with await Client.connected(broker.address, "friend", version) as friend:
        await friend.subscribed("page-answers", qos=2)
        for qos in (0, 1, 2):
            await friend.publish("page/news", b"at %d" % qos, qos)
            await asyncio.to_thread(shows, browser, f"page/news {qos} at {qos}")
        await friend.publish("page/question", b"one", 2)
        await friend.receive("page-answers", b"answer to one", 2)
        await asyncio.to_thread(shows, browser, "answered")
