"""Pull requests of tasks: what GitHub says about them, and what can be done with them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.forge_state import CheckRun
from support.page import Window
from support.work import Platform


def test_pull_requests_are_read_made_ready_merged_and_closed(window: Window, platform: Platform, forge: Forge):
    page = window.go("/pulls")
    expect(page.get_by_text("No pull requests yet")).to_be_visible()
    window.check_accessible()
    repo = forge.repositories[FORGE_REPOSITORY]
    agents = [platform.add_agent(f"echo {n} > {n}.txt", f"agent {n}") for n in range(3)]
    runs = [platform.start(agents[n], f"Change number {n}", **({"options": {"draft": True}} if n == 0 else {})) for n in range(3)]
    for run in runs:
        platform.wait(run)
    pulls = {pull.title.removeprefix("chore: "): pull for pull in repo.pulls}
    draft, checked, unwanted = (pulls[f"Change number {n}"] for n in range(3))
    repo.checks.append(CheckRun(forge.next_id(), "lint", checked.head_sha, "completed", "failure"))
    forge.review(checked, "reviewer", "APPROVED", "Looks right to me")

    page.reload()
    row = {n: page.get_by_role("listitem", name=f"Pull request {pull.number}", exact=True)
           for n, pull in enumerate((draft, checked, unwanted))}
    expect(row[0].get_by_text("Draft")).to_be_visible()
    row[0].get_by_role("button", name="Mark ready").click()
    expect(row[0].get_by_role("button", name="Merge")).to_be_visible()
    assert not draft.draft

    expect(row[1].get_by_text("Checks failed")).to_be_visible()
    row[1].get_by_role("button", name=f"Details of #{checked.number}").click()
    expect(row[1].get_by_text("Looks right to me")).to_be_visible()
    expect(row[1].get_by_text("lint")).to_be_visible()
    expect(row[1].get_by_text("No conflicts with the base branch.")).to_be_visible()
    window.check_accessible()
    row[1].get_by_role("button", name="Merge").click()
    dialog = page.get_by_role("dialog", name=f"Merge pull request #{checked.number}?")
    dialog.get_by_label("How").select_option("squash")
    dialog.get_by_role("button", name="Merge", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("The check lint has not passed")
    dialog.get_by_label("Merge although a check runs or has failed").check()
    dialog.get_by_role("button", name="Merge", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(row[1]).to_have_count(0)
    assert checked.merged
    assert platform.get(f"/tasks/{runs[1]['task_id']}")["status"] == "done"

    row[2].get_by_role("button", name=f"Actions for #{unwanted.number}").click()
    page.get_by_role("menuitem", name="Close without merging").click()
    page.get_by_role("dialog", name=f"Close pull request #{unwanted.number}?").get_by_role("button", name="Close it").click()
    page.get_by_role("tab", name="Closed").click()
    expect(row[2].get_by_text("Closed", exact=True)).to_be_visible()
    assert unwanted.state == "closed"
    page.get_by_role("tab", name="Merged").click()
    expect(row[1].get_by_text("Merged", exact=True)).to_be_visible()
    window.check_quiet("ERR_NETWORK_CHANGED", "409")


def test_a_branch_that_is_behind_is_updated(window: Window, platform: Platform, forge: Forge):
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.strict = True
    agents = [platform.add_agent(f"echo {n} > {n}.txt", f"agent {n}") for n in range(2)]
    runs = [platform.start(agents[n], f"Change number {n}") for n in range(2)]
    for run in runs:
        platform.wait(run)
    repo.git.commit("main", {"other.txt": "other\n"}, "feat: other")
    pulls = {pull.title.removeprefix("chore: "): pull for pull in repo.pulls}
    first, second = (pulls[f"Change number {n}"] for n in range(2))

    page = window.go("/pulls")
    row = page.get_by_role("listitem", name=f"Pull request {first.number}", exact=True)
    row.get_by_role("button", name=f"Details of #{first.number}").click()
    expect(row.get_by_text("It is behind the base branch.")).to_be_visible()
    window.check_accessible()
    row.get_by_role("button", name="Update branch").click()
    expect(row.get_by_role("button", name="Update branch")).to_have_count(0)
    assert not first.behind() and second.behind()

    page = window.go(f"/work/{runs[1]['task_id']}")
    expect(page.get_by_text("The branch is behind main")).to_be_visible()
    window.check_accessible()
    # Somebody changes the same file meanwhile.
    repo.git.commit("main", {"1.txt": "of somebody else\n"}, "feat: conflicting")
    page.get_by_role("button", name="Update branch").click()
    expect(page.get_by_text("conflicts have to be resolved in a checkout first")).to_be_visible()
    expect(page.get_by_role("button", name="Update branch")).to_have_count(0)  # it is not what helps now
    assert second.behind()
    window.check_quiet("ERR_NETWORK_CHANGED", "409")


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://elsewhere.example/octo-org/widget/pull/7",
                                 "http://github.com/octo-org/widget/pull/7"])
def test_an_address_that_is_not_at_github_is_no_link(window: Window, platform: Platform, url: str):
    """OA-93 (links): whatever stands in the database."""
    task = platform.ask("POST", "/tasks", {"title": "Lead astray", "repo_url": FORGE_REPOSITORY}, 201).json()
    task |= {"pull_request_url": url, "pull_request_number": 7, "pull_request_state": "open"}
    board = platform.get("/board")
    for column in board["columns"]:
        column["tasks"] = [task] * len(column["tasks"])
    for path, answer in {"tasks?*": {"tasks": [task], "total": 1}, "board?*": board}.items():
        window.page.route(f"**/api/v1/{path}", lambda route, *, answer=answer: route.fulfill(json=answer))
    for path in ("/pulls", "/board"):
        page = window.go(path)
        expect(page.get_by_text("Lead astray")).to_be_visible()
        expect(page.get_by_text("Open", exact=True).first).to_be_visible()
        assert url not in page.evaluate("[...document.links].map(link => link.getAttribute('href'))")
        expect(page.get_by_role("link", name="7")).to_have_count(0)
