"""The board: tasks are made, started, moved and finished, by mouse, finger and keyboard."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from support.board import PICKED_UP, BoardPage
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.page import NARROW, PASSWORD, Browser, Window
from support.server import CaissonServer
from support.sessions import wait_until
from support.work import Platform, settings_for

TABLET = {"width": 1100, "height": 800}
# Works until it is called off, or is done at once.
WORKER = 'case "$CAISSON_TASK" in *slowly*) sleep 600;; esac; echo "I write it down"; printf "%s" "$CAISSON_TASK" > notes.txt'
# Asks what to write, and writes what it is told.
STEERED = """echo "what shall I write?"
until [ -e /tmp/said ]; do sleep 0.1; done
echo "I write: $(cat /tmp/said)"
cp /tmp/said notes.txt"""
# A new sandbox on this host makes a browser drop what it is loading; the page asks for it again.
NETWORK = "ERR_NETWORK_CHANGED"


@pytest.fixture(scope="module")
def world() -> Iterator[Platform]:
    """One server for the tests that only move tasks about."""
    with Forge() as forge:
        forge.add_token(FORGE_TOKEN)
        forge.add_repository(FORGE_REPOSITORY)
        with CaissonServer(env=settings_for(forge)) as server:
            yield Platform(server)


@pytest.fixture
def board(browser: Browser, world: Platform) -> Iterator[BoardPage]:
    with opened(browser, world) as page:
        yield page


@contextlib.contextmanager
def opened(browser: Browser, world: Platform, path: str = "/board", **options: object) -> Iterator[BoardPage]:
    with browser.window(world.server, **options) as window:
        window.sign_in()
        yield BoardPage(window.go(path), window)


def add(platform: Platform, title: str, **fields: object) -> dict:
    return platform.ask("POST", "/tasks", {"title": title, "repo_url": FORGE_REPOSITORY, **fields}, 201).json()


def status(platform: Platform, task: dict) -> str:
    return platform.get(f"/tasks/{task['id']}")["status"]


def run_in_sandbox(platform: Platform, command: str) -> None:
    (sandbox,) = [each for each in platform.get("/sandboxes")["sandboxes"] if each["status"] == "running"]
    answer = platform.ask("POST", f"/sandboxes/{sandbox['id']}/execute", {"command": command}, 200).json()
    assert answer["exit_code"] == 0, answer


def test_the_whole_story_by_mouse(window: Window, platform: Platform, forge: Forge):
    """A task is made, dragged, seen at work while it works, read as a diff, and has its pull request."""
    platform.add_agent(STEERED, "ada")
    page = window.go("/board")
    board = BoardPage(page)
    page.get_by_role("button", name="New task").first.click()
    dialog = page.get_by_role("dialog", name="New task")
    dialog.get_by_label("Title").fill("Write the notes")
    dialog.get_by_label("Repository").fill(FORGE_REPOSITORY)
    dialog.get_by_role("button", name=re.compile("^Create(?! and)")).click()
    board.expect_in("Pending", "Write the notes")
    board.drag("Write the notes", board.column("In progress"))
    board.expect_in("In progress", "Write the notes").click()
    page.get_by_role("link", name="Agent work").last.click()
    page.get_by_role("tab", name="Logs").click()
    log = page.get_by_role("log")
    expect(log.get_by_text("what shall I write")).to_be_visible()
    expect(log.get_by_text("I write: bread and milk")).to_have_count(0)
    run_in_sandbox(platform, "echo bread and milk > /tmp/said.new; mv /tmp/said.new /tmp/said")
    expect(log.get_by_text("I write: bread and milk")).to_be_visible()
    expect(page.get_by_role("link", name="Pull request Open #1")).to_be_visible()
    page.get_by_role("tab", name="Changes").click()
    expect(page.get_by_role("region", name="notes.txt", exact=True)).to_contain_text("bread and milk")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Board").click()
    board.expect_in("In review", "Write the notes")
    expect(board.column("In review").get_by_role("link", name="Pull request Open #1")).to_be_visible()
    [pull] = forge.repositories[FORGE_REPOSITORY].pulls
    assert "bread and milk" in pull.repo.git.run("show", f"{pull.head}:notes.txt").stdout
    window.check_quiet(NETWORK)


def go_to(page: Page, target: Locator, key: str = "Tab") -> None:
    """By pressing the key until the focus is there."""
    expect(target).to_be_visible()
    for _ in range(200):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press(key)
    expect(target).to_be_focused()


def test_the_whole_story_by_keyboard_alone(window: Window, platform: Platform, forge: Forge):
    """OA-85, OA-87: made, started by a keyboard drag, reviewed, sent back with feedback, merged. Nothing is focused by
    the test itself."""
    platform.add_agent(WORKER, "ada")
    page, keys = window.page, window.page.keyboard
    board = BoardPage(page)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    keys.press("g")
    keys.press("b")
    expect(page.get_by_text("No tasks yet")).to_be_visible()
    window.check_accessible()
    keys.press("c")
    expect(page.get_by_role("dialog", name="New task")).to_be_visible()
    window.check_accessible()
    keys.type("Write the notes")
    keys.press("Tab")
    keys.type("They tell what is new.")
    keys.press("Tab")
    keys.press("Control+a")
    keys.type(FORGE_REPOSITORY)
    keys.press("Control+Shift+Enter")
    board.expect_in("Pending", "Write the notes")
    keys.press("j")
    expect(board.card("Write the notes")).to_be_focused()
    keys.press("Space")
    expect(page.get_by_text(PICKED_UP)).to_be_attached()
    keys.press("ArrowRight")
    expect(page.get_by_text("#1 Write the notes is over In progress.")).to_be_attached()
    keys.press("Space")
    board.expect_in("In review", "Write the notes")
    expect(page.get_by_role("link", name="Pull request Open #1")).to_be_visible()
    [pull] = forge.repositories[FORGE_REPOSITORY].pulls
    task = platform.get("/tasks")["tasks"][0]
    assert platform.events(type="sandbox_created", task_id=task["id"]), "the drop made no sandbox"

    go_to(page, board.card("Write the notes"), "j")
    keys.press("Enter")
    go_to(page, page.get_by_role("complementary").get_by_role("link", name="Agent work"))
    keys.press("Enter")
    expect(page.get_by_role("tab", name="Logs", selected=True)).to_be_visible()
    go_to(page, page.get_by_role("log").get_by_role("button", name="Work"))
    keys.press("Enter")
    expect(page.get_by_role("log").get_by_text("I write it down")).to_be_visible()
    keys.press("/")
    expect(page.get_by_role("searchbox", name="Find")).to_be_focused()
    keys.type("I write it")
    expect(page.get_by_text("1 of 1")).to_be_visible()
    go_to(page, page.get_by_role("log"))
    keys.press("]")
    expect(page.get_by_role("tab", name="Changes", selected=True)).to_be_visible()
    expect(page.get_by_role("region", name="notes.txt", exact=True)).to_contain_text("They tell what is new.")
    keys.press("g")
    keys.press("b")

    board.expect_in("In review", "Write the notes")
    go_to(page, board.card("Write the notes"), "j")
    keys.press("2")
    expect(page.get_by_role("dialog", name="What shall be different?")).to_be_visible()
    expect(page.get_by_role("button", name="Send back")).to_be_disabled()
    window.check_accessible()
    keys.type("Say it in French")
    keys.press("Control+Enter")
    board.expect_in("In progress", "Write the notes")
    board.expect_in("In review", "Write the notes")
    assert "Say it in French" in pull.repo.git.run("show", f"{pull.head}:notes.txt").stdout
    assert len(forge.repositories[FORGE_REPOSITORY].pulls) == 1, "another pull request was opened"

    go_to(page, board.card("Write the notes"), "j")
    keys.press("4")
    dialog = page.get_by_role("dialog", name="Merge pull request #1?")
    expect(dialog.get_by_role("button", name="Leave it open")).to_be_visible()
    window.check_accessible()
    go_to(page, dialog.get_by_role("button", name="Merge", exact=True))
    keys.press("Enter")
    board.expect_in("Done", "Write the notes")
    assert pull.merged
    window.check_quiet()


def test_a_move_is_shown_at_once_and_taken_back_when_the_server_fails(board: BoardPage, world: Platform):
    """OA-84."""
    task = add(world, "Tidy the cellar")
    page, held = board.page, []
    board.expect_in("Pending", "Tidy the cellar")
    page.route("**/api/v1/tasks/*/move", lambda route: held.append(route))
    board.drag("Tidy the cellar", board.column("Done"))
    board.expect_in("Done", "Tidy the cellar")
    assert status(world, task) == "pending"
    while not held:  # it is shown before the request is even sent
        page.wait_for_timeout(20)
    answer_500(held[0])
    board.expect_in("Pending", "Tidy the cellar")
    toast = page.get_by_role("listitem").filter(has_text="stays in Pending")
    expect(toast).to_contain_text("The disk is full.")
    expect(board.column("Pending").get_by_text("Not moved")).to_be_visible()
    page.unroute("**/api/v1/tasks/*/move")
    toast.get_by_role("button", name="Retry").click()
    board.expect_in("Done", "Tidy the cellar")
    expect(board.column("Done").get_by_text("Not moved")).to_have_count(0)
    assert status(world, task) == "done"


def answer_500(route: Route) -> None:
    route.fulfill(status=500, json={"error": {"code": "internal", "message": "The disk is full.", "debug_id": "d1"}})


def test_cards_are_put_in_order_and_two_windows_see_it(browser: Browser, board: BoardPage, world: Platform, figure):
    for title in ("First of three", "Second of three", "Third of three"):
        add(world, title, status="backlog")
    with opened(browser, world, "/board?all=1&q=three") as other:
        other.expect_in("Backlog", "Third of three")
        # Signing the other one in has set the password again, which ends logins.
        login = {"name": "admin", "password": PASSWORD}
        assert board.page.context.request.post(f"{world.server.url}/api/v1/auth/login", data=login).ok
        board.page.goto(other.page.url)
        board.expect_in("Backlog", "Third of three")
        board.drag("Third of three", board.card("First of three"))
        for each in (board, other):
            expect(each.column("Backlog").locator("[data-row]")).to_have_text([re.compile(word) for word in ("Third", "First", "Second")])
        board.drag("First of three", board.column("Pending"))
        dropped = time.monotonic()
        other.expect_in("Pending", "First of three")
        figure(f"page: another browser sees a move {1000 * (time.monotonic() - dropped):.0f} ms after the drop")
        board.expect_in("Pending", "First of three")
        other.page.get_by_role("button", name="Actions for #").last.click()
        other.page.get_by_role("menuitem", name="Move to Done").click()
        board.expect_in("Done", "First of three")


def test_a_finger_drags_cards_also_on_a_phone(browser: Browser, world: Platform):
    add(world, "Touch the tablet")
    add(world, "Touch the phone")
    with opened(browser, world, "/board?q=touch", size=TABLET, has_touch=True) as board:
        board.expect_in("Pending", "Touch the tablet")
        board.touch_drag("Touch the tablet", board.column("Done"), "Done")
        board.expect_in("Done", "Touch the tablet")
        # Shown at once; the window must not go before the server knows.
        wait_until(lambda: world.get("/tasks", text="Touch the tablet", status="done")["total"], "the move is made")
    with opened(browser, world, "/board?q=touch", size=NARROW, has_touch=True) as board:
        switch = board.page.get_by_role("group", name="Column")
        expect(board.page.get_by_role("region", name="Done")).to_have_count(0)
        board.expect_in("Pending", "Touch the phone")
        board.touch_drag("Touch the phone", switch.get_by_role("button", name="In review"), "In review")
        # Nothing to review: the server refuses, and says why.
        expect(board.page.get_by_text("there is nothing to review")).to_be_visible()
        switch.get_by_role("button", name="Done").click()
        board.expect_in("Done", "Touch the tablet")
        expect(board.page).to_have_url(re.compile("column=done"))
        assert board.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_no_free_agent_is_explained_and_the_task_starts_when_one_is(browser: Browser, world: Platform):
    """OA-86."""
    busy = world.add_agent(WORKER, "grace")
    slow = world.start(busy, "Work slowly")
    add(world, "Wait for grace", agent_id=busy["id"])
    add(world, "Wait for anybody")
    with opened(browser, world, "/board?q=wait") as board:
        page = board.page
        expect(page.get_by_text("1 / 1 agents busy")).to_be_visible()
        board.drag("Wait for grace", board.column("In progress"))
        dialog = page.get_by_role("dialog", name="No agent is free")
        expect(dialog).to_contain_text("The agent grace works on #")
        board.window.check_accessible()
        dialog.get_by_role("button", name="Cancel").click()
        board.expect_in("Pending", "Wait for grace")
        board.focus("Wait for anybody")
        page.keyboard.press("2")
        expect(dialog).to_contain_text("All agents are at work (1)")
        dialog.get_by_role("button", name="Start when one is free").click()
        waits = board.column("Pending").get_by_text("Waits for an agent, #1")
        expect(waits).to_be_visible()
        # The server keeps the wish, not the page.
        page.evaluate("sessionStorage.clear()")
        page.reload()
        expect(waits).to_be_visible()
        page.get_by_role("button", name=re.compile("^Actions for #")).last.click()
        page.get_by_role("menuitem", name="Do not start by itself").click()
        expect(waits).to_have_count(0)
        board.focus("Wait for anybody")
        page.keyboard.press("2")
        dialog.get_by_role("button", name="Start when one is free").click()
        expect(waits).to_be_visible()
        # Another agent may do it.
        world.add_agent(WORKER, "hopper")
        board.expect_in("In review", "Wait for anybody")
        board.focus("Wait for grace")
        page.keyboard.press("2")
        dialog.get_by_label("Agent").select_option(label="hopper (command)")
        dialog.get_by_role("button", name="Start with this agent").click()
        board.expect_in("In review", "Wait for grace")
        # Work that is moved away is called off, which is asked first.
        page.get_by_role("searchbox", name="Search tasks").fill("slowly")
        board.focus("Work slowly")
        page.keyboard.press("1")
        confirm = page.get_by_role("dialog", name="Stop the work on")
        confirm.get_by_role("button", name="Stop and move").click()
        board.expect_in("Pending", "Work slowly")
        world.wait(slow, "canceled")


def test_the_steps_of_running_work_are_on_its_card_for_few_requests(browser: Browser, world: Platform):
    agent = world.add_agent(WORKER, "noether")
    asked: list[str] = []
    with opened(browser, world, "/board?q=stepwise") as board:
        board.page.on("request", lambda request: "executions" in request.url and asked.append(request.url))
        started = world.start(agent, "Work slowly and stepwise")
        card = board.page.get_by_role("listitem").filter(has=board.card("stepwise"))
        expect(card.get_by_role("img", name="Work: Running")).to_be_visible()
        world.ask("POST", f"/tasks/{started['task_id']}/cancel", status=202)
        world.wait(started, "canceled")
    assert len(asked) <= 4, asked


def test_filters_layout_and_selection(browser: Browser, world: Platform):
    agent = world.add_agent("true", "turing")
    for number, priority in enumerate(("urgent", "high", "low")):
        add(world, f"Sort the shelf {number}", priority=priority, agent_id=agent["id"] if number else None)
    with opened(browser, world, "/board?q=shelf") as board:
        page = board.page
        board.expect_in("Pending", "Sort the shelf 2")
        page.get_by_label("Priority", exact=True).select_option("high")
        expect(board.card("Sort the shelf")).to_have_count(1)
        page.get_by_label("Agent", exact=True).select_option("none")
        expect(page.get_by_text("No task matches")).to_be_visible()
        page.reload()
        expect(page.get_by_text("No task matches")).to_be_visible()
        page.get_by_role("button", name="Clear the filters").click()
        page.get_by_role("searchbox", name="Search tasks").fill("shelf")
        page.get_by_role("button", name="List").click()
        page.get_by_label("Group by").select_option("priority")
        expect(page.get_by_role("region", name="urgent").get_by_role("button", name="Sort the shelf 0")).to_be_visible()
        for part in ("layout=list", "group=priority", "q=shelf"):
            expect(page).to_have_url(re.compile(part))
        select_and_change(page, board)
        names = {task["title"]: task for task in world.get("/tasks", text="shelf")["tasks"]}
        assert [names[f"Sort the shelf {n}"]["priority"] for n in range(2)] == ["medium", "medium"]
        page.get_by_role("toolbar", name="Selected tasks").get_by_role("button", name="Delete").click()
        dialog = page.get_by_role("dialog", name="Delete 3 tasks?")
        expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
        dialog.get_by_label("Type delete to go on").fill("delete")
        dialog.get_by_role("button", name="Delete").click()
        expect(page.get_by_text("No task matches")).to_be_visible()


def select_and_change(page: Page, board: BoardPage) -> None:
    """By keys: two tasks are selected and get another priority; then all of them are selected."""
    bar = page.get_by_role("toolbar", name="Selected tasks")
    board.focus("Sort the shelf 0")
    page.keyboard.press("x")
    page.keyboard.press("Shift+J")
    expect(bar.get_by_text("2 selected")).to_be_visible()
    bar.get_by_role("button", name="Priority").click()
    page.get_by_role("menuitem", name="medium").click()
    expect(page.get_by_text("Priority medium: 2 tasks")).to_be_visible()
    expect(bar).to_have_count(0)
    board.focus("Sort the shelf 0")
    page.keyboard.press("Control+a")
    expect(bar.get_by_text("3 selected")).to_be_visible()


def test_the_panel_changes_a_task_and_the_board_is_accessible(browser: Browser, world: Platform):
    first = add(world, "Read the manual", description="All of it.")
    second = add(world, "Write the manual")
    with browser.window(world.server) as window:
        window.sign_in()
        page = window.go("/board?q=manual")
        board = BoardPage(page)
        board.card("Read the manual").press("Enter")
        panel = page.get_by_role("complementary", name="manual")
        expect(panel.get_by_label("Description")).to_have_value("All of it.")
        expect(page).to_have_url(re.compile(f"task={first['id']}"))
        panel.get_by_label("Waits for").select_option(second["id"])
        expect(board.column("Pending").get_by_text("Blocked")).to_be_visible()
        panel.get_by_label("Title").fill("Read the whole manual")
        panel.get_by_role("button", name="Save").click()
        board.expect_in("Pending", "Read the whole manual")
        panel.get_by_label("Priority").select_option("urgent")
        window.check_accessible()
        panel.focus()
        page.keyboard.press("Escape")
        expect(panel).to_have_count(0)
        expect(board.card("Read the whole manual")).to_be_focused()
        assert world.get(f"/tasks/{first['id']}")["priority"] == "urgent"
        page.keyboard.press("d")
        dialog = page.get_by_role("dialog", name="Delete #")
        expect(dialog).to_contain_text("Read the whole manual")
        dialog.get_by_role("button", name="Delete").click()
        expect(board.card("Read the whole manual")).to_have_count(0)
        window.check_quiet()


def test_a_board_of_hundreds_loses_no_task(window: Window, platform: Platform):
    titles = [f"Row r{n:03}x" for n in range(230)]
    for title in titles:
        platform.ask("POST", "/tasks", {"title": title}, 201)
    page = window.go("/board?layout=list")
    cards = page.locator("[data-row]")
    expect(cards).to_have_count(100)
    page.get_by_role("button", name="Show 100 more").click()
    expect(cards).to_have_count(200)
    page.get_by_role("button", name="Load 30 more").click()
    page.get_by_role("button", name="Show 30 more").click()
    expect(cards).to_have_count(230)
    assert sorted(cards.all_inner_texts()) == titles

    # A search looks at all of them, though few are read at first.
    page = window.go("/board?layout=list&q=row")
    expect(cards).to_have_count(100)
    for wanted in (titles[0], titles[100], titles[-1]):
        page = window.go(f"/board?q={wanted.split()[1]}")
        expect(cards).to_have_count(1)
        expect(cards).to_contain_text(wanted)

    page = window.go("/board")
    column = page.get_by_role("region", name="Pending", exact=True)
    expect(column).to_contain_text("230")
    while column.get_by_role("button", name="more").count():
        column.get_by_role("button", name="more").click()
        expect(column.locator("[aria-busy=true]")).to_have_count(0)
    expect(column.locator("[data-row]")).to_have_count(230)
    window.check_quiet()
