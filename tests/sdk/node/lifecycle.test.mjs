// Create, connect, inspect, extend, kill, list.
import { assert, e2b, isLatest, rejectsWith, Sandbox, test, uniqueName, until, withSandbox } from './helpers.mjs'

const secondsOfLife = (info) => (info.endAt - info.startedAt) / 1000
const near = (actual, expected, tolerance) =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${actual} is not about ${expected}`)

test('create, run, kill', async () => {
  const sandbox = await Sandbox.create()
  assert.match(sandbox.sandboxId, /^i[a-z0-9]{20}$/)
  assert.equal(await sandbox.isRunning(), true)
  assert.equal((await sandbox.commands.run('echo hello')).stdout, 'hello\n')
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.isRunning(), false)
})

test('info of a default sandbox', async () => {
  await withSandbox(
    async (sandbox) => {
      const info = await sandbox.getInfo()
      assert.equal(info.sandboxId, sandbox.sandboxId)
      assert.equal(info.name, 'base')
      assert.deepEqual(info.metadata, {})
      assert.equal(info.state, 'running')
      assert.ok(info.cpuCount >= 1 && info.memoryMB >= 128)
      near(secondsOfLife(info), 300, 5)
      assert.deepEqual(await Sandbox.getInfo(sandbox.sandboxId), info)
    },
    { timeoutMs: undefined }
  )
})

test('metadata and environment', async () => {
  const metadata = { purpose: 'test', 'odd key': 'a&b=c %41 é' }
  const envs = { GREETING: 'hello world', QUOTES: `it's "fine"` }
  await withSandbox(
    async (sandbox) => {
      const info = await sandbox.getInfo()
      assert.deepEqual(info.metadata, metadata)
      near(secondsOfLife(info), 77, 3)
      const shown = await sandbox.commands.run('printf "%s|%s|%s" "$GREETING" "$QUOTES" "$E2B_SANDBOX"')
      assert.equal(shown.stdout, `hello world|it's "fine"|true`)
      const mine = await sandbox.commands.run('echo $GREETING', { envs: { GREETING: 'mine' } })
      assert.equal(mine.stdout, 'mine\n')
    },
    { metadata, envs, timeoutMs: 77_000 }
  )
})

test('a timeout that is over is refused', async () => {
  await rejectsWith(Sandbox.create({ timeoutMs: 0 }), 'SandboxError', 'Timeout must be greater than 0')
})

test('unknown template', async () => {
  await rejectsWith(Sandbox.create('no-such-template'), 'SandboxError', /^404: /)
})

test('wrong API key', async () => {
  const apiKey = 'e2b_' + '0'.repeat(40)
  await rejectsWith(Sandbox.create({ apiKey }), 'AuthenticationError')
  await rejectsWith(Sandbox.getInfo('i' + '0'.repeat(20), { apiKey }), 'AuthenticationError')
})

test('kill twice, and what follows', async () => {
  const sandbox = await Sandbox.create()
  assert.equal(await Sandbox.kill(sandbox.sandboxId), true)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  assert.equal(await sandbox.kill(), false)
  await rejectsWith(sandbox.getInfo(), 'SandboxNotFoundError')
  await rejectsWith(Sandbox.connect(sandbox.sandboxId), 'SandboxNotFoundError')
  await rejectsWith(sandbox.setTimeout(10_000), 'SandboxNotFoundError')
  await rejectsWith(sandbox.getMetrics(), 'SandboxNotFoundError')
  await rejectsWith(sandbox.commands.run('true'), 'SandboxNotFoundError')
  await rejectsWith(sandbox.commands.list(), 'TimeoutError')
  await rejectsWith(sandbox.files.list('/'), 'TimeoutError')
  await rejectsWith(sandbox.files.read('/etc/hostname'), 'TimeoutError')
})

test('expiry ends the sandbox', async () => {
  const sandbox = await Sandbox.create({ timeoutMs: 3_000 })
  await until(async () => !(await sandbox.isRunning()), { deadlineMs: 30_000, what: 'the end' })
  await rejectsWith(sandbox.getInfo(), 'SandboxNotFoundError')
  assert.equal(await sandbox.kill(), false)
})

test('connect reaches the same machine and never shortens its life', async () => {
  await withSandbox(async (sandbox) => {
    await sandbox.files.write('note.txt', 'left here')
    const before = (await sandbox.getInfo()).endAt
    const other = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 10_000 })
    assert.equal(other.sandboxId, sandbox.sandboxId)
    assert.equal(await other.files.read('note.txt'), 'left here')
    assert.equal((await other.commands.run('cat note.txt')).stdout, 'left here')
    assert.equal((await sandbox.getInfo()).endAt.getTime(), before.getTime())
    await sandbox.connect({ timeoutMs: 1_000_000 })
    near(((await sandbox.getInfo()).endAt - before) / 1000, 700, 20)
  })
})

test('setTimeout moves the end both ways', async () => {
  await withSandbox(async (sandbox) => {
    for (const seconds of [900, 60]) {
      const now = Date.now()
      await sandbox.setTimeout(seconds * 1000)
      near(((await sandbox.getInfo()).endAt - now) / 1000, seconds, 30) // the call itself may take its time
    }
    await Sandbox.setTimeout(sandbox.sandboxId, 0)
    await until(async () => !(await sandbox.isRunning()), { what: 'the end after setTimeout(0)' })
  })
})

test('metrics', async () => {
  await withSandbox(async (sandbox) => {
    const metrics = await until(
      async () => {
        const found = await sandbox.getMetrics()
        return found.length > 0 && found
      },
      { deadlineMs: 40_000, what: 'a first metric' }
    )
    const latest = metrics.at(-1)
    assert.ok(latest.cpuCount >= 1 && latest.cpuUsedPct >= 0)
    assert.ok(latest.memUsed > 0 && latest.memUsed <= latest.memTotal)
    assert.ok(latest.diskUsed > 0 && latest.diskUsed <= latest.diskTotal)
    const past = await sandbox.getMetrics({ start: new Date(2020, 0, 1), end: new Date(2020, 0, 2) })
    assert.deepEqual(past, [])
  })
})

async function collect(paginator) {
  const pages = []
  while (paginator.hasNext) pages.push((await paginator.nextItems()).map((s) => s.sandboxId))
  return pages
}

test('list: filters, order, pages', async () => {
  const tag = uniqueName()
  const made = []
  for (let index = 0; index < 3; index++) {
    made.push(await Sandbox.create({ timeoutMs: 600_000, metadata: { tag, index: `${index}` } }))
  }
  try {
    const ids = made.map((s) => s.sandboxId)
    const query = { metadata: { tag } }
    assert.deepEqual((await collect(Sandbox.list({ query }))).flat(), ids.toReversed())
    const pages = await collect(Sandbox.list({ query, limit: 1 }))
    assert.deepEqual(pages.filter((p) => p.length), ids.toReversed().map((id) => [id]))
    const one = { metadata: { tag, index: '1' } }
    assert.deepEqual((await collect(Sandbox.list({ query: one }))).flat(), [ids[1]])
    const running = { metadata: { tag }, state: ['running'] }
    assert.deepEqual((await collect(Sandbox.list({ query: running }))).flat(), ids.toReversed())
    const paused = { metadata: { tag }, state: ['paused'] }
    assert.deepEqual((await collect(Sandbox.list({ query: paused }))).flat(), [])
    const first = Sandbox.list({ query, limit: 2 })
    await first.nextItems()
    const rest = await collect(Sandbox.list({ query, limit: 2, nextToken: first.nextToken }))
    assert.deepEqual(rest.flat(), [ids[0]])
    if (isLatest) {
      const ascending = await collect(Sandbox.list({ query, order: 'asc', limit: 2 }))
      assert.deepEqual(ascending.flat(), ids)
    }
  } finally {
    await Promise.all(made.map((s) => s.kill()))
  }
})

test('list: metadata survives its three encodings', async () => {
  for (const metadata of [{ 'a b': 'c&d=e' }, { percent: '100% %41' }, { 'ünï': '☃ + /' }]) {
    const tagged = { ...metadata, tag: uniqueName() }
    await withSandbox(
      async (sandbox) => {
        const found = await collect(Sandbox.list({ query: { metadata: tagged } }))
        assert.deepEqual(found.flat(), [sandbox.sandboxId])
      },
      { metadata: tagged }
    )
  }
})

test('the classes of errors are related as documented', () => {
  assert.ok(new e2b.SandboxNotFoundError('x') instanceof e2b.NotFoundError)
  assert.ok(new e2b.TimeoutError('x') instanceof e2b.SandboxError)
})
