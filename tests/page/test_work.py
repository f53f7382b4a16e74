"""Agent Work: tasks, sessions and agents as they work."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect
from support.page import NARROW, Window
from support.sessions import Session
from support.work import Platform

# Says, does and prints something, then waits for a file, then changes one.
CAREFUL = r"""
echo '{"caisson":"message","text":"I look at the **tests**."}'
echo '{"caisson":"tool","name":"bash","input":{"command":"make check"}}'
echo '{"caisson":"tool","name":"read_file","input":{"path":"README.md"}}'
echo first line of the output
until [ -e /tmp/go ]; do sleep 0.1; done
cat /tmp/go
until [ -e /tmp/end ]; do sleep 0.1; done
echo "$CAISSON_TASK" > file.txt
echo '{"caisson":"summary","text":"The file says what was asked for."}'
"""
NUMBERED = 400
# Talks, waits for a file, and goes on talking for a while.
TALKING = f"""
for i in $(seq 1 {NUMBERED // 2}); do echo "number $i"; done
until [ -e /tmp/more ]; do sleep 0.05; done
for i in $(seq {NUMBERED // 2 + 1} {NUMBERED}); do echo "number $i"; sleep 0.02; done
echo x > file.txt
"""
MESSAGES = 260
CHATTY = (f"for i in $(seq 1 {MESSAGES}); do "
          """printf '{"caisson":"message","text":"Thought %s"}\\n' "$i"; done; echo x > file.txt""")
ANSWERS = r"""
printf '{"caisson":"message","text":"You said *%s*."}\n' "$CAISSON_MESSAGE"
case "$CAISSON_MESSAGE" in *wait*) sleep 300;; esac
printf '{"caisson":"message","text":"That was **all** of it."}\n'
"""
# Toasts go by themselves: what they said is noted.
NOTE_TOASTS = """() => {
  window.toasts = [];
  new MutationObserver(() => {
    for (const title of document.querySelectorAll("[data-sonner-toast] [data-title]")) window.toasts.push(title.textContent);
  }).observe(document.body, {childList: true, subtree: true});
}"""
HIDE = "(on) => { Object.defineProperty(document, 'hidden', {get: () => on, configurable: true}); document.dispatchEvent(new Event('visibilitychange')); }"
# A new sandbox on this host makes a browser drop what it is loading; the page asks for it again.
NETWORK = "ERR_NETWORK_CHANGED"


def in_sandbox(platform: Platform, started: dict, command: str) -> None:
    sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    answer = platform.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": command}, 200).json()
    assert answer["exit_code"] == 0, answer


def feed(page: Page):
    return page.get_by_role("region", name="Activity")


def downloaded_log(page: Page) -> list[str]:
    page.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="As text").click()
    return download.value.path().read_text().splitlines()


def test_a_task_is_followed_from_an_empty_screen_to_its_pull_request(window: Window, platform: Platform, figure):
    page = window.go("/work")
    expect(page.get_by_text("Nothing is running")).to_be_visible()
    window.check_accessible()
    page.get_by_role("button", name="New agent").first.click()
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Adapter").select_option("command")
    page.get_by_label("Command", exact=True).fill(CAREFUL)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="ada", level=1)).to_be_visible()
    (agent,) = platform.get("/agents")["agents"]

    started = platform.start(agent, "Write the greeting")
    page.get_by_role("navigation", name="Agents and sessions").get_by_role("link", name="ada").filter(has_text="Write the greeting").click()
    expect(page.get_by_role("heading", name="Write the greeting", level=1)).to_be_visible()
    steps = page.get_by_role("list", name="Steps")
    expect(steps.get_by_role("listitem").filter(has_text="Clone: Done")).to_be_visible()
    expect(steps.get_by_role("listitem").filter(has_text="Work: Running")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "30")
    expect(page.get_by_role("link", name="Sandbox running")).to_contain_text("left")

    # Calls of tools are one line, with details each its own.
    expect(feed(page).get_by_text("2 tool calls")).to_be_visible()
    page.get_by_label("Details").check()
    expect(feed(page).get_by_text("bash: make check")).to_be_visible()
    expect(feed(page).get_by_text("read_file: README.md")).to_be_visible()
    expect(page).to_have_url(re.compile("details=all"))
    page.get_by_label("Details").uncheck()

    # A line is there soon after it was printed.
    log = page.get_by_role("log")
    expect(log.get_by_text("first line of the output")).to_be_visible()
    in_sandbox(platform, started, "echo printed just now > /tmp/go.new; mv /tmp/go.new /tmp/go")
    printed = time.monotonic()
    expect(log.get_by_text("printed just now")).to_be_visible()
    figure(f"page: a line was visible {1000 * (time.monotonic() - printed):.0f} ms after its command was given")

    # The title of a tab that is not in front tells the state.
    page.evaluate(HIDE, True)
    expect(page).to_have_title(re.compile("^Running: #1 Write the greeting"))
    page.evaluate(HIDE, False)
    expect(page).to_have_title(re.compile("^#1 Write the greeting"))

    # Tabs and the terminal by keys.
    page.keyboard.press("]")
    expect(page.get_by_role("tab", name="Changes")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("[")
    expect(page.get_by_role("tab", name="Logs")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Control+`")
    expect(page.get_by_role("region", name="Terminal").first).to_be_visible()
    page.get_by_role("button", name="Terminal (Ctrl+`)").click()
    expect(page.get_by_role("region", name="Terminal")).to_have_count(0)
    window.check_accessible()

    page.evaluate(NOTE_TOASTS)
    in_sandbox(platform, started, "touch /tmp/end")
    page.wait_for_function("() => window.toasts.includes('Pull request #1 was opened')")
    expect(page.get_by_role("link", name="Pull request Open #1")).to_be_visible()
    expect(page.get_by_title("The file says what was asked for.")).to_be_visible()
    platform.wait(started)
    expect(page.get_by_role("link", name="Sandbox ended")).to_be_visible()
    page.get_by_role("tab", name="History").click()
    commits = page.get_by_role("list", name="Commits")
    expect(commits.get_by_role("listitem")).to_have_count(1)
    expect(commits.get_by_role("link", name="Commit")).to_have_attribute("href", re.compile("/octo-org/widget/commit/[0-9a-f]{40}$"))
    page.get_by_role("tab", name="Files").click()
    expect(page.get_by_text("The sandbox ended at")).to_be_visible()
    expect(page.get_by_text(re.compile("The work up to commit [0-9a-f]{8} is on"))).to_be_visible()

    # Whoever comes late sees all of it, on a small screen in one column.
    window.page = other = window.context.new_page()
    other.set_viewport_size(NARROW)
    window.go(f"/work/{started['task_id']}?tab=logs")
    other.get_by_role("button", name="Open all groups").click()
    assert {"first line of the output", "printed just now"} <= set(downloaded_log(other))
    other.get_by_role("tab", name="Activity").click()
    expect(feed(other).get_by_text("I look at the tests.")).to_be_visible()
    assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
    window.check_accessible()
    other.close()
    window.page = page

    # Back to the agent with what should be different. Files of a sandbox that is being ended cannot be read.
    page.get_by_role("tab", name="Logs").click()
    page.get_by_label("Feedback to the agent").fill("Say it louder")
    page.get_by_label("Feedback to the agent").press("Control+Enter")
    expect(feed(page).get_by_text("Attempt 2 began.")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Stop #1 Write the greeting?")).to_be_visible()
    dialog.get_by_role("button", name="Stop the work").click()
    expect(feed(page).get_by_text("The work was called off.")).to_be_visible()
    window.check_quiet(NETWORK)


def test_every_line_is_there_once_though_the_server_was_killed(window: Window, platform: Platform):
    started = platform.start(platform.add_agent(TALKING))
    page = window.go(f"/work/{started['task_id']}?tab=logs")
    log = page.get_by_role("log")
    expect(log.get_by_text(f"number {NUMBERED // 2}", exact=True)).to_be_visible()
    in_sandbox(platform, started, "touch /tmp/more")
    platform.server.crash()
    expect(page.get_by_text("What you see may be old.")).to_be_visible()
    expect(log.get_by_text(re.compile(r"^number \d+$")).first).to_be_visible()
    platform.server.start()
    platform.wait(started)
    expect(page.get_by_text("In review").first).to_be_visible()
    expect(page.get_by_text("What you see may be old.")).to_have_count(0)
    expect(log.get_by_role("button", name="Clean up")).to_be_visible()
    numbers = [line for line in downloaded_log(page) if line.startswith("number ")]
    assert numbers == [f"number {i}" for i in range(1, NUMBERED + 1)]


def test_a_person_approves_in_the_feed_which_stays_small(window: Window, platform: Platform):
    agent = platform.add_agent(CHATTY, config={"command": ["bash", "-c", CHATTY], "approve_push": True})
    started = platform.start(agent)
    page = window.go(f"/work/{started['task_id']}")
    card = feed(page).get_by_role("group", name="Approval")
    expect(page.get_by_text("Needs you", exact=True)).to_be_visible()
    expect(card.get_by_text("Waiting for you")).to_be_visible()

    entries = feed(page).locator("[data-entry]")
    expect(feed(page).get_by_text(f"Thought {MESSAGES}", exact=True)).to_be_visible()
    assert entries.count() == 200
    feed(page).get_by_role("button", name="Load earlier").click()
    expect(feed(page).get_by_text("Thought 1", exact=True)).to_be_visible()
    assert entries.count() == 200
    feed(page).get_by_role("button", name="Load later").click()
    expect(feed(page).get_by_role("button", name="Load later")).to_have_count(0)
    window.check_accessible()

    card.focus()
    page.keyboard.press("a")
    expect(card.get_by_text("Approved")).to_be_visible()
    platform.wait(started)
    expect(page.get_by_role("link", name="Pull request Open #1")).to_be_visible()
    window.check_quiet(NETWORK)


def test_a_failure_says_what_failed_and_is_tried_again(window: Window, platform: Platform):
    started = platform.start(platform.add_agent("echo no such thing >&2; exit 3"))
    page = window.go(f"/work/{started['task_id']}?tab=events")
    alert = page.get_by_role("alert").filter(has_text="Work failed")
    expect(alert).to_contain_text("no such thing")
    page.evaluate(HIDE, True)
    expect(page).to_have_title(re.compile("^Failed: "))
    page.evaluate(HIDE, False)
    page.get_by_label("Filter events").fill("execution_completed")
    expect(page.get_by_role("list", name="Events").get_by_text("execution_completed").first).to_be_visible()
    alert.get_by_role("button", name="View log").click()
    expect(page.get_by_role("log").get_by_text("no such thing", exact=True)).to_be_in_viewport()
    with page.expect_response(re.compile("/retry$")) as answer:
        alert.get_by_role("button", name="Retry").click()
    assert answer.value.ok, answer.value.text()
    platform.wait(started, "failed")
    expect(feed(page).get_by_text("The work failed.")).to_have_count(2)
    expect(alert).to_contain_text("no such thing")
    window.check_accessible()
    window.check_quiet(NETWORK)


def test_a_session_answers_waits_stops_and_sleeps(window: Window, platform: Platform):
    platform.add_agent(ANSWERS, name="ada")
    platform.ask("POST", "/agents", {"name": "bob", "adapter": "claude", "config": {"model": "small"}}, 201)
    page = window.go("/work")
    page.get_by_role("button", name="New session").click()
    page.get_by_label("First message").fill("hello there")
    page.get_by_label("First message").press("Control+Enter")
    talk = page.get_by_role("region", name="Conversation")
    expect(talk.get_by_text("You said hello there.")).to_be_visible()
    expect(talk.locator("strong", has_text="all")).to_be_visible()
    side = page.get_by_role("navigation", name="Agents and sessions").get_by_role("region", name="Sessions")
    expect(side.get_by_role("link", name="hello there")).to_contain_text("Active")
    window.check_accessible()

    # One answer is being written, the next message waits, and the model cannot be changed.
    box = page.get_by_label("Message to ada")
    box.fill("wait for me")
    box.press("Control+Enter")
    expect(talk.get_by_text("You said wait for me.")).to_be_visible()
    expect(talk.get_by_text("Working", exact=True)).to_be_visible()
    expect(page.get_by_label("Model")).to_be_disabled()
    page.evaluate(HIDE, True)
    expect(page).to_have_title(re.compile("^Running: hello there"))
    page.evaluate(HIDE, False)
    box.fill("and then this")
    page.get_by_role("button", name="Queue").click()
    expect(talk.get_by_text("Queued", exact=True)).to_be_visible()
    page.reload()
    expect(talk.get_by_text("You said wait for me.")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(talk.get_by_text("Stopped.", exact=True)).to_be_visible()
    expect(talk.get_by_text("You said and then this.")).to_be_visible()

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(side.get_by_role("link", name="hello there")).to_contain_text("Asleep")
    page.get_by_role("tab", name="Files").click()
    expect(page.get_by_text("The sandbox sleeps")).to_be_visible()
    page.get_by_label("Model").select_option("small")
    session = Session(platform, platform.get("/sessions")["sessions"][0])
    expect(page.get_by_label("Model")).to_have_value("small")
    page.get_by_role("button", name="Resume").click()
    session.wait_for_status("active")
    assert session.row()["model"] == "small"
    # Its files are there again; a sandbox that ends while it is asked for them could not answer.
    expect(page.get_by_role("button", name=re.compile("^(File|Folder) ")).first).to_be_visible()

    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("heading", name="Delete hello there?")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(side.get_by_text("No sessions yet.")).to_be_visible()
    # The news of its end may come while its screen is still there and asks for it once more.
    window.check_quiet(NETWORK, "404", "409")  # deleted, or asleep, when it is asked for


def test_a_task_is_paused_and_goes_on(window: Window, platform: Platform):
    agent = platform.add_agent(CAREFUL, "ada")
    started = platform.start(agent, "Write the greeting")
    page = window.go(f"/work/{started['task_id']}")
    expect(page.get_by_role("log").get_by_text("first line of the output")).to_be_visible()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    expect(page.get_by_text("The work stands still")).to_be_visible()
    expect(page.get_by_role("link", name="Sandbox paused")).to_be_visible()
    window.check_accessible()
    window.go("/board")
    expect(page.get_by_role("region", name="In progress").get_by_text("Paused")).to_be_visible()
    window.go(f"/work/{started['task_id']}")
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Sandbox running")).to_be_visible()
    in_sandbox(platform, started, "touch /tmp/go /tmp/end")
    platform.wait(started)
    window.check_quiet(NETWORK, "404", "409")
