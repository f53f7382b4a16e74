"""Real frameworks, installed from their registries, built and served in a sandbox, opened in a real
browser through their preview URLs."""

from __future__ import annotations

import json
import os

import pytest
from support.browser import browser_page
from support.builds import Builds, page

pytestmark = pytest.mark.timeout(900)

APP = """import {{ useState }} from 'react'
export default function App() {{
  const [count, setCount] = useState(0)
  return <main><h1>{title}</h1><button onClick={{() => setCount(count + 1)}}>count is {{count}}</button></main>
}}
"""
VITE = {
    "package.json": json.dumps({
        "name": "page", "private": True, "type": "module",
        "scripts": {"dev": "vite", "build": "vite build"},
        "dependencies": {"react": "^18.3.1", "react-dom": "^18.3.1"},
        "devDependencies": {"vite": "^5.4.11", "@vitejs/plugin-react": "^4.3.4"},
    }),
    "vite.config.js": "import react from '@vitejs/plugin-react'\nexport default { plugins: [react()] }\n",
    "index.html": '<!doctype html><title>Vite</title><div id="root"></div>'
                  '<script type="module" src="/src/main.jsx"></script>\n',
    "src/main.jsx": "import { createRoot } from 'react-dom/client'\nimport App from './App.jsx'\n"
                    "createRoot(document.getElementById('root')).render(<App />)\n",
    "src/App.jsx": APP.format(title="First"),
}
FLASK = {
    "requirements.txt": "flask\n",
    "app.py": "from flask import Flask\napp = Flask(__name__)\n\n\n@app.get('/')\ndef home():\n"
              "    return '<title>Flask</title><h1>Hello from Flask</h1>'\n",
}
GO = {
    "go.mod": "module hello\n\ngo 1.21\n",
    "main.go": """package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Hello from Go") })
	http.ListenAndServe(":"+os.Getenv("PORT"), nil)
}
""",
}


def host_registries() -> dict[str, str]:
    """Where this machine gets its packages from, if that is not the usual place."""
    names = ("npm_config_registry", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


@pytest.fixture
def builds(make_server) -> Builds:
    return Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BUILD_READY_TIMEOUT_S": "300",
                                   "CAISSON_BUILD_INSTALL_TIMEOUT_S": "400"}))


def test_a_static_site_in_a_browser(builds: Builds) -> None:
    build = builds.ready(files={"index.html": page("Plain page")})
    with browser_page() as tab:
        tab.goto(build["preview_url"])
        assert tab.title() == "Plain page"


def change_by_hand(builds: Builds, build: dict, tab, title: str) -> None:
    """A change inside the sandbox comes through the WebSocket: hot reload, which keeps the count."""
    tab.get_by_role("button", name="count is 0").click()
    builds.ask("PUT", f"/sandboxes/{build['sandbox_id']}/files?path=/home/user/project/src/App.jsx",
               APP.format(title=title).encode())
    tab.get_by_role("heading", name=title).wait_for()
    assert tab.get_by_role("button").inner_text() == "count is 1"


def test_vite_and_react_with_hot_reload_and_a_broken_iteration(builds: Builds) -> None:
    env = host_registries()
    first = builds.wait(builds.create(files=VITE, env=env), deadline_s=700)
    assert first["framework"] == "vite" and ":5173" not in first["preview_url"]
    with browser_page() as tab:
        sockets = []
        tab.on("websocket", lambda socket: sockets.append(socket.url))
        tab.goto(first["preview_url"])
        tab.get_by_role("heading", name="First").wait_for()
        tab.get_by_role("button", name="count is 0").click()
        tab.get_by_role("button", name="count is 1").wait_for()
        second = builds.wait(builds.create(parent_id=first["id"], env=env, goal="Second",
                                           files={"src/App.jsx": APP.format(title="Second")}), deadline_s=700)
        assert second["build_version"] == "build_v0_2" and second["preview_url"] == first["preview_url"]
        tab.goto(second["preview_url"])
        tab.get_by_role("heading", name="Second").wait_for()
        assert any(url.startswith(f"ws://5173-{first['sandbox_id']}.") for url in sockets), sockets
        change_by_hand(builds, second, tab, "By hand")
        # After a nap the same server answers, and changes come through a WebSocket as before.
        box = f"/sandboxes/{second['sandbox_id']}"
        look = {"argv": ["pgrep", "-f", "[v]ite"]}
        servers = builds.ask("POST", box + "/execute", look, 200).json()["stdout"]
        assert servers
        builds.ask("POST", box + "/pause", {}, 200)
        builds.ask("POST", box + "/resume", {}, 200)
        sockets.clear()
        tab.goto(second["preview_url"])
        tab.get_by_role("heading", name="By hand").wait_for()
        change_by_hand(builds, second, tab, "After the nap")
        assert sockets and builds.ask("POST", box + "/execute", look, 200).json()["stdout"] == servers
        broken = builds.create(parent_id=second["id"], env=env, files={"src/App.jsx": "export default function App( {"})
        failed = builds.wait(broken, "failed", deadline_s=700)
        assert failed["error_category"] == "compile_error" and failed["debug_id"]
        assert failed["restored_version_of"] == second["id"]
        tab.goto(second["preview_url"])
        tab.get_by_role("heading", name="Second").wait_for()


def test_flask_in_a_browser(builds: Builds) -> None:
    build = builds.wait(builds.create(files=FLASK, env=host_registries()), deadline_s=700)
    assert build["framework"] == "flask"
    with browser_page() as tab:
        tab.goto(build["preview_url"])
        assert tab.get_by_role("heading").inner_text() == "Hello from Flask"
    broken = builds.create(parent_id=build["id"], env=host_registries(), files={"app.py": FLASK["app.py"] + "import nothing_of_this_name\n"})
    failed = builds.wait(broken, "failed", deadline_s=700)
    assert failed["error_category"] == "runtime_crash" and "nothing_of_this_name" in failed["error_summary"]
    assert "Hello from Flask" in builds.open(build)


def test_go_whose_compiler_the_template_does_not_have(builds: Builds) -> None:
    build = builds.wait(builds.create(files=GO), deadline_s=700)
    assert build["framework"] == "go"
    assert builds.open(build) == "Hello from Go"
