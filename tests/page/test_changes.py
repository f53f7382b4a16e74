"""The changes of a task: by file, in two layouts, with a review for the agent or for the pull request."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.page import Window
from support.work import BUSY, Platform

FILES = 300
# A new sandbox on this host makes a browser drop what it is loading; the page asks for it again.
NETWORK = "ERR_NETWORK_CHANGED"
WAITING = "echo at it; until [ -e /tmp/end ]; do sleep 0.1; done"
MAIN = ["int main() {", "  return 1;", "}", *(f"int f{n}() {{ return {n}; }}" for n in range(4, 61))]
# Two parts, one of them only white space; a new name; a binary file; a long one.
EDIT = r"""
sed -i -e 's/return 1;$/return 0;/' -e '40s/^/    /' app/main.c
mv 'old name.txt' 'new name.txt'
printf 'GIF\0\1' > logo.png
seq -f 'line %.0f' 0 1499 > zbig.txt
"""
MANY = rf"""
git checkout -q -- . && git clean -fdq
for n in $(seq 0 {FILES - 1}); do
  mkdir -p dir$((n % 20)); seq -f "text $n %.0f" 0 29 > dir$((n % 20))/file$(printf %03d $n).txt
done
"""


class Checkout:
    """The files that an agent works on, while it waits."""

    def __init__(self, platform: Platform, started: dict) -> None:
        self.platform = platform
        platform.wait_for_event("command_output", task_id=started["task_id"])
        self.sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
        self.path = platform.get(f"/sandboxes/{self.sandbox}")["repo_path"]

    def run(self, script: str) -> None:
        body = {"argv": ["bash", "-ec", script], "cwd": self.path}
        answer = self.platform.ask("POST", f"/sandboxes/{self.sandbox}/execute", body, 200).json()
        assert answer["exit_code"] == 0, answer


def file(page: Page, path: str):
    return page.get_by_role("region", name=path, exact=True)


def test_changes_are_read_by_file(window: Window, platform: Platform, forge: Forge, figure):
    forge.repositories[FORGE_REPOSITORY].git.commit(
        "main", {"app/main.c": "\n".join(MAIN) + "\n", "old name.txt": "a name\nof some length\n"}, "feat: begin")
    started = platform.start(platform.add_agent(WAITING), "Carry the pane")
    checkout = Checkout(platform, started)
    page = window.go(f"/runs/{started['run_id']}?tab=changes")
    expect(page.get_by_text("No changes yet")).to_be_visible()
    window.check_accessible()

    checkout.run(EDIT)
    page.reload()
    main = file(page, "app/main.c")
    expect(main.locator(".diff-code-insert").first).to_have_text("  return 0;")
    expect(main.get_by_text("+2 −2")).to_be_visible()
    expect(page.get_by_role("heading", name="old name.txt → new name.txt")).to_be_visible()
    expect(file(page, "logo.png")).to_contain_text("A binary file")
    # Words of the language have colours, which can be read on every ground.
    expect(main.locator(".diff-code-insert .hljs-keyword").first).to_have_text("return")
    expect(main.locator(".hljs-number").first).to_be_visible()
    window.check_accessible()
    big = file(page, "zbig.txt")
    expect(big.get_by_text("line 1499")).to_have_count(0)
    big.get_by_role("button", name="lines, show").click()
    expect(big.get_by_text("line 1499")).to_have_count(1)
    big.get_by_role("button", name="Fold").click()

    # Two columns, and back, by a key. White space.
    page.keyboard.press("u")
    expect(main.locator("table.diff-split")).to_have_count(1)
    window.check_accessible()
    page.keyboard.press("u")
    expect(main.locator("table.diff-unified")).to_have_count(1)
    page.get_by_role("button", name="Ignore white space").click()
    expect(main.locator(".diff-code-insert")).to_have_count(1)
    page.get_by_role("button", name="Ignore white space").click()
    page.get_by_role("button", name="Wrap long lines").click()
    expect(main.locator(".diff-unwrapped")).to_have_count(1)

    # From change to change.
    spoken = page.get_by_role("group", name="Changes of task").get_by_role("status").first
    page.keyboard.press("n")
    expect(spoken).to_have_text("Change 1 of 5: app/main.c")
    page.keyboard.press("n")
    expect(main.locator(".diff-part-current")).to_contain_text("@@ -37,7 +37,7 @@")
    page.keyboard.press("p")
    expect(main.locator(".diff-part-current")).to_contain_text("@@ -1,5 +1,5 @@")

    # Lines that the diff leaves out are read from the file, until it is another one.
    numbers = main.locator("tbody.diff-hunk td.diff-gutter:nth-child(2)")
    expect(numbers).to_have_count(5 + 1 + 7 + 1)
    between = main.locator("[data-part='1']")
    between.get_by_role("button", name="Show 20 lines above").click()
    expect(main.get_by_text("int f17() { return 17; }")).to_be_visible()
    expect(main.get_by_text("int f16() { return 16; }")).to_have_count(0)
    between.get_by_role("button", name="Show 11 lines").click()
    expect(main.get_by_text("int f16() { return 16; }")).to_be_visible()
    expect(between.get_by_role("button")).to_have_count(0)
    main.get_by_role("button", name="Show 17 lines").click()
    expect(main.get_by_text("int f60() { return 60; }")).to_be_visible()
    expect(main.get_by_role("button", name="Show")).to_have_count(0)
    expect(numbers).to_have_count(len(MAIN) + 2)
    window.check_accessible()
    page.reload()
    expect(main.locator(".diff-code-insert").first).to_have_text("  return 0;")
    checkout.run("sed -i -e 's/return 0;$/return 2;/' app/main.c")
    main.get_by_role("button", name="Show 20 lines above").click()
    expect(page.get_by_text("The file has changed since this diff was made.")).to_be_visible()
    checkout.run("sed -i -e 's/return 2;$/return 0;/' app/main.c")

    # Looked at: folded, counted, and still so after a reload, until the file changes.
    page.get_by_label("Viewed app/main.c").check()
    expect(page.get_by_text("1 of 4 viewed")).to_be_visible()
    page.reload()
    expect(page.get_by_text("1 of 4 viewed")).to_be_visible()
    checkout.run("sed -i -e 's/return 0;$/return 2;/' app/main.c; rm zbig.txt")
    page.reload()
    expect(page.get_by_text("0 of 3 viewed")).to_be_visible()

    # Found by name.
    page.get_by_label("Find a file").fill("MAIN")
    tree = page.get_by_role("navigation", name="Changed files")
    expect(tree.get_by_role("button")).to_have_count(1)
    expect(tree.get_by_role("button", name="main.c")).to_be_visible()

    # Hundreds of files: all are there, few are drawn.
    checkout.run(MANY)
    begun = time.monotonic()
    page.reload()
    expect(page.get_by_text(f"{FILES} files")).to_be_visible()
    expect(file(page, "dir0/file000.txt").get_by_text("text 0 29")).to_be_visible()
    figure(f"page: {FILES} files are shown after {time.monotonic() - begun:.2f} s, with the page")
    assert page.locator("table.diff").count() < 30
    page.get_by_label("Find a file").fill("file299")
    tree.get_by_role("button", name="file299.txt").click()
    expect(file(page, "dir19/file299.txt").get_by_text("text 299 0")).to_be_in_viewport()

    # Of work that is over only the diff is left: nothing around it can be shown.
    checkout.run(f"rm -r dir*; {EDIT} sed -i 's/return 0;$/return 3;/' app/main.c; touch /tmp/end")
    platform.wait(started)
    page.reload()
    expect(main.locator(".diff-code-insert").first).to_have_text("  return 3;")
    expect(main.get_by_role("button", name=re.compile("^Show .* lines"))).to_have_count(0)
    window.check_quiet(NETWORK)


def test_a_review_goes_to_the_agent_or_to_the_pull_request(window: Window, platform: Platform, forge: Forge):
    agent = platform.add_agent(BUSY.format(file="work.txt"))
    started = platform.start(agent, "Write the file")
    platform.wait(started)
    task = started["task_id"]
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    forge.review(pull, "ada", "COMMENTED", "See below", [("work.txt", 1, "Why done?")])
    page = window.go(f"/runs/{started['run_id']}?tab=changes")
    work = file(page, "work.txt")
    expect(work.locator(".diff-code-insert")).to_have_text("done")
    expect(work.get_by_role("article", name="Comment by ada")).to_contain_text("Why done?")

    # By mouse, to the pull request.
    work.locator(".diff-code-insert").hover()
    work.get_by_role("button", name="Comment on line 1").click()
    page.get_by_label("Comment on work.txt:1").fill("Say more")
    page.get_by_role("button", name="Add to the review").click()
    review = page.get_by_role("region", name="Review")
    expect(review).to_contain_text("1 comment not sent")
    window.check_accessible()
    review.get_by_role("button", name="Post to pull request").click()
    page.get_by_role("dialog").get_by_label("In general").fill("One question")
    page.get_by_role("dialog").get_by_role("button", name="Post").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(review).to_have_count(0)
    assert [(one.path, one.line, one.body) for one in pull.review_comments][-1] == ("work.txt", 1, "Say more")

    # By keys, to the agent.
    page.keyboard.press("n")
    page.keyboard.press("m")
    page.keyboard.type("Write finished instead")
    page.keyboard.press("Control+Enter")
    review.get_by_role("button", name="Send to agent").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("pre")).to_have_text("work.txt:1\n> done\nWrite finished instead")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog).to_have_count(0)
    expect(review).to_have_count(0)
    told = platform.get(f"/tasks/{task}")
    assert told["feedback"] == "work.txt:1\n> done\nWrite finished instead"
    executions = platform.get(f"/tasks/{task}/executions")["executions"]
    assert len(executions) == 2
    platform.wait(executions[0])
    window.check_quiet(NETWORK)
