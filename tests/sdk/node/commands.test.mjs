// Commands in the foreground and in the background, input, connections, time limits.
import { assert, e2b, gate, rejectsWith, sharedSandbox, sleep, test, uniqueName, until, within } from './helpers.mjs'

const sandbox = sharedSandbox()
const commands = () => sandbox().commands
const listed = async (pid) => (await commands().list()).some((p) => p.pid === pid)
const gone = (pid) => until(async () => !(await listed(pid)), { what: `the end of process ${pid}` })

async function exitOf(promise) {
  try {
    await promise
  } catch (error) {
    assert.ok(error instanceof e2b.CommandExitError, `${error.constructor.name}: ${error.message}`)
    return error
  }
  throw new assert.AssertionError({ message: 'the command did not fail' })
}

test('stdout, stderr, exit codes', async () => {
  const result = await commands().run('echo out; echo err >&2')
  assert.deepEqual([result.stdout, result.stderr, result.exitCode, result.error], ['out\n', 'err\n', 0, undefined])
  for (const code of [1, 42, 255]) {
    const error = await exitOf(commands().run(`echo before; echo bad >&2; exit ${code}`))
    assert.deepEqual([error.exitCode, error.stdout, error.stderr], [code, 'before\n', 'bad\n'])
    assert.equal(error.error, `exit status ${code}`)
  }
  const killed = await exitOf(commands().run('kill -9 $$'))
  assert.deepEqual([killed.exitCode, killed.error], [-1, 'signal: killed'])
})

test('user, directory, environment', async () => {
  const plain = await commands().run('echo "$USER|$HOME|$(pwd)|$(whoami)"')
  assert.equal(plain.stdout, 'user|/home/user|/home/user|user\n')
  const root = await commands().run('echo "$(whoami)|$HOME"', { user: 'root' })
  assert.equal(root.stdout, 'root|/root\n')
  assert.equal((await commands().run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
  const odd = { A: 'one two', B: 'line\nbreak', UNI: 'žluť' }
  const shown = await commands().run('printf "%s|%s|%s" "$A" "$B" "$UNI"', { envs: odd })
  assert.equal(shown.stdout, 'one two|line\nbreak|žluť')
  await rejectsWith(commands().run('true', { user: 'ghost' }), 'AuthenticationError', "invalid username: 'ghost'")
  await rejectsWith(commands().run('true', { cwd: '/no/such' }), 'InvalidArgumentError', "cwd '/no/such' does not exist")
})

test('callbacks', async () => {
  const out = []
  const err = []
  const seen = gate(sandbox()) // the second line is only printed once the first was seen
  const running = commands().run(`for i in 1 2 3; do echo o$i; echo e$i >&2; ${seen.wait}; done`, {
    onStdout: (data) => out.push(data),
    onStderr: (data) => err.push(data),
  })
  running.catch(() => {})
  await until(() => out.length > 0, { what: 'the first line' })
  await seen.open()
  const result = await running
  assert.equal(out.join(''), result.stdout)
  assert.equal(err.join(''), 'e1\ne2\ne3\n')
  assert.ok(out.length > 1)
})

test('twenty megabytes', async () => {
  const size = 20 * 1024 * 1024
  const result = await commands().run(`head -c ${size} /dev/zero | tr '\\0' x`, { timeoutMs: 80_000 })
  assert.equal(result.stdout.length, size)
  assert.ok(/^x+$/.test(result.stdout.slice(0, 1000)))
}, { timeout: 180_000 })

test('text split over chunks, and what is no text', async () => {
  const split = await commands().run(
    String.raw`printf '\xe2'; sleep 0.3; printf '\x82'; sleep 0.3; printf '\xac\xf0\x9f'; sleep 0.3; printf '\x98\x80'`
  )
  assert.equal(split.stdout, '€😀')
  assert.equal((await commands().run(String.raw`printf 'a\xff\xfeb'`)).stdout, 'a\ufffd\ufffdb')
})

test('fifty in parallel', async () => {
  const runs = Array.from({ length: 50 }, (_, i) => commands().run(`sleep 0.5; echo ${i}`))
  const outputs = (await Promise.all(runs)).map((r) => r.stdout)
  assert.deepEqual(outputs, Array.from({ length: 50 }, (_, i) => `${i}\n`))
})

test('background, list, kill', async () => {
  const handle = await commands().run('sleep 61', { background: true, cwd: '/tmp', envs: { MARK: 'x' } })
  const found = (await commands().list()).find((p) => p.pid === handle.pid)
  assert.equal(found.cmd, '/bin/bash')
  assert.deepEqual(found.args, ['-l', '-c', 'sleep 61'])
  assert.deepEqual(found.envs, { MARK: 'x' })
  assert.equal(found.cwd, '/tmp')
  assert.equal(await handle.kill(), true)
  const error = await exitOf(handle.wait())
  assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed'])
  await gone(handle.pid)
  assert.equal(await commands().kill(handle.pid), false)
})

test('background output is collected', async () => {
  const handle = await commands().run('echo one; sleep 0.3; echo two; exit 4', { background: true })
  const error = await exitOf(handle.wait())
  assert.deepEqual([error.exitCode, handle.stdout, handle.exitCode], [4, 'one\ntwo\n', 4])
})

test('stdin until it is closed', async () => {
  const handle = await commands().run('cat', { background: true, stdin: true })
  await commands().sendStdin(handle.pid, 'first ')
  await handle.sendStdin(new TextEncoder().encode('second €\n'))
  await commands().closeStdin(handle.pid)
  assert.equal((await handle.wait()).stdout, 'first second €\n')
  assert.equal((await commands().run('cat; echo end')).stdout, 'end\n')
})

test('stdin of a command without one', async () => {
  const handle = await commands().run('sleep 100', { background: true })
  await rejectsWith(commands().sendStdin(handle.pid, 'x'), 'SandboxError')
  await handle.kill()
})

test('connect to a running command, and just after its end', async () => {
  const last = gate(sandbox())
  const handle = await commands().run(`seq -f line%g 8; ${last.wait}; echo line9; echo line10; exit 5`, {
    background: true,
  })
  const seen = []
  const other = await commands().connect(handle.pid, { onStdout: (data) => seen.push(data) })
  await last.open()
  assert.equal((await exitOf(handle.wait())).exitCode, 5)
  assert.equal((await exitOf(other.wait())).exitCode, 5)
  assert.ok(seen.join('').endsWith('line9\nline10\n'))
  const late = await commands().connect(handle.pid)
  assert.equal((await exitOf(late.wait())).exitCode, 5)
})

test('unknown process', async () => {
  assert.equal(await commands().kill(4_000_000), false)
  await rejectsWith(commands().connect(4_000_000), 'NotFoundError', 'process with pid 4000000 not found')
  await rejectsWith(commands().sendStdin(4_000_000, 'x'), 'NotFoundError')
})

test('disconnect leaves the command running', async () => {
  const name = `/tmp/${uniqueName()}`
  const seen = gate(sandbox())
  const handle = await commands().run(`${seen.wait}; touch ${name}`, { background: true })
  await handle.disconnect()
  assert.equal(await listed(handle.pid), true)
  await seen.open()
  await until(() => sandbox().files.exists(name), { what: 'the file of a disconnected command' })
})

test('timeouts of the foreground and of the server', async () => {
  await rejectsWith(within(commands().run('sleep 100', { timeoutMs: 1_000 }), 60_000), 'TimeoutError')
  const handle = await commands().run('sleep 100', { background: true, timeoutMs: 6_000 })
  await handle.disconnect()
  await gone(handle.pid)
  assert.equal((await commands().run('sleep 1.5; echo late', { timeoutMs: 0 })).stdout, 'late\n')
})

test('the whole tree dies at the timeout', async () => {
  const mark = `sleep 7${Math.floor(Math.random() * 1e8)}`
  await rejectsWith(commands().run(`${mark} & ${mark} & wait`, { timeoutMs: 1_500 }), 'TimeoutError')
  await until(async () => {
    const count = await commands().run(`pgrep -cf '^${mark}' || true`)
    return count.stdout.trim() === '0'
  })
})

test('a child that holds the pipe does not hold the end', async () => {
  const handle = await commands().run('sleep 100 & wait', { background: true })
  await sleep(300)
  await handle.kill()
  assert.equal((await within(exitOf(handle.wait()))).exitCode, -1)
})
