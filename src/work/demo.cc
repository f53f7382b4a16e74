#include "work/demo.h"

namespace caisson::work {
namespace {

// Runs in the checkout. The pauses are for people, who want to see how it goes on.
constexpr std::string_view kScript = R"sh(
set -eu
say() { printf '{"caisson":"message","text":"%s"}\n' "$1"; sleep 1; }
run() { printf '{"caisson":"tool","name":"bash","input":{"command":"%s"}}\n' "$*"; "$@"; sleep 1; }
wrote() { printf '{"caisson":"file","path":"%s","change":"added"}\n' "$1"; sleep 1; }

say 'I am a small script that stands in for a coding agent. I need no key and no network.'
run git log --oneline
say 'The repository is empty. I begin with a page.'
cat > index.html <<'HTML'
<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Hello from a sandbox</title>
  <link rel="stylesheet" href="style.css">
</head>
<body>
  <main>
    <h1>Hello from a sandbox</h1>
    <p>An agent wrote this page in a machine of its own, which is gone by now.</p>
  </main>
</body>
</html>
HTML
wrote index.html
say 'Now it gets some style.'
cat > style.css <<'CSS'
body { margin: 0; min-height: 100vh; display: grid; place-items: center;
       font-family: system-ui, sans-serif; background: #f4f1ea; color: #22313f; }
main { max-width: 36rem; padding: 2rem; }
CSS
wrote style.css
say 'And a test, so that it stays as it is.'
cat > test.sh <<'TEST'
#!/bin/sh
# The page has a title, and the style that it names is there.
set -eu
cd "$(dirname "$0")"
grep -q '<title>Hello from a sandbox</title>' index.html
grep -q 'href="style.css"' index.html
test -s style.css
echo 'all tests passed'
TEST
chmod +x test.sh
wrote test.sh
run ./test.sh
printf '{"caisson":"summary","text":"A page with its style, and a test that passes."}\n'
)sh";

constexpr std::string_view kDescription =
    "A demonstration: the agent writes a small web page, its style and a test for it. It has no "
    "repository, so nothing is pushed; what it wrote is kept with the task.";

// One for each user, found again by its id whatever it is called meanwhile.
NewAgent DemoAgent(const std::string& owner_id) {
  return {.id = "demo-" + owner_id,
          .name = "demo",
          .role = "demonstration",
          .adapter = "command",
          .config = {{"command", {"bash", "-c", kScript}}}};
}

}  // namespace

Task<Result<Demonstration>> Demo::Start(std::string owner_id, std::string task_id) {
  CO_TRY_ASSIGN(auto agent, co_await agents_.Create(owner_id, DemoAgent(owner_id)));
  if (!agent.current_task_id) {
    NewTask task{.id = std::move(task_id),
                 .title = "Build a small web page",
                 .description = std::string(kDescription),
                 .agent_id = agent.id};
    auto started = co_await tasks_.CreateAndStart(owner_id, std::move(task));
    if (started) co_return Demonstration{started->task_id, agent.id, started->already};
    // Somebody else of this user may have been faster.
    CO_TRY_ASSIGN(agent, co_await agents_.Get(owner_id, agent.id));
    if (!agent.current_task_id) co_return tl::unexpected(started.error());
  }
  co_return Demonstration{*agent.current_task_id, agent.id, /*already=*/true};
}

}  // namespace caisson::work
