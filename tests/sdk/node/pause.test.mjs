// Pause, resume, auto-pause, auto-resume, snapshots, forks.
import { assert, fetchByHost, isLatest, rejectsWith, Sandbox, test, uniqueName, until, withSandbox } from './helpers.mjs'

const output = async (sandbox, command) => (await sandbox.commands.run(command)).stdout.trim()
const bootId = (sandbox) => output(sandbox, 'cat /proc/sys/kernel/random/boot_id')
const stateOf = async (sandbox) => (await sandbox.getInfo()).state
const pids = async (sandbox) => (await sandbox.commands.list()).map((p) => p.pid)
const background = (sandbox, command) => sandbox.commands.run(command, { background: true, timeoutMs: 0 })

test('processes and files survive a pause', async () => {
  await withSandbox(async (sandbox) => {
    const boot = await bootId(sandbox)
    await sandbox.files.write('kept.txt', 'kept')
    const process = await background(sandbox, 'exec sleep 1000')
    process.wait().catch(() => {}) // its stream ends with the pause
    assert.equal(await sandbox.pause(), true)
    assert.equal(await sandbox.isRunning(), false)
    assert.equal(await stateOf(sandbox), 'paused')
    assert.equal(await sandbox.pause(), false)
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 120_000 })
    assert.equal(again.sandboxId, sandbox.sandboxId)
    assert.equal(await stateOf(again), 'running')
    assert.equal(await again.files.read('kept.txt'), 'kept')
    assert.equal(await bootId(again), boot)
    assert.ok((await pids(again)).includes(process.pid))
  })
})

test('without memory it boots anew', async () => {
  await withSandbox(async (sandbox) => {
    const first = await bootId(sandbox)
    await sandbox.files.write('kept.txt', 'kept')
    assert.equal(await sandbox.pause({ keepMemory: false }), true)
    await sandbox.connect()
    const second = await bootId(sandbox)
    assert.notEqual(second, first)
    assert.equal(await sandbox.files.read('kept.txt'), 'kept')
    if (!isLatest) return
    await sandbox.pause()
    await sandbox.connect({ onResume: 'reboot' })
    assert.ok(![first, second].includes(await bootId(sandbox)))
  })
})

test('paused when its time is over, listed, killed', async () => {
  const metadata = { tag: uniqueName() }
  await withSandbox(
    async (sandbox) => {
      const { lifecycle } = await sandbox.getInfo()
      assert.equal(lifecycle.onTimeout, 'pause')
      await until(async () => (await stateOf(sandbox)) === 'paused', { what: 'paused' })
      const listed = async (state) =>
        (await Sandbox.list({ query: { metadata, state } }).nextItems()).map((s) => s.sandboxId)
      assert.deepEqual(await listed(['paused']), [sandbox.sandboxId])
      assert.deepEqual(await listed(['running']), [])
      assert.equal(await sandbox.kill(), true)
      assert.deepEqual(await listed(['paused']), [])
      await rejectsWith(Sandbox.connect(sandbox.sandboxId), 'NotFoundError')
    },
    { timeoutMs: 3_000, metadata, lifecycle: { onTimeout: 'pause' } }
  )
})

test('traffic resumes it', async () => {
  await withSandbox(
    async (sandbox) => {
      const server = await background(sandbox, 'exec python3 -m http.server 3220')
      server.wait().catch(() => {})
      const status = async () => (await fetchByHost(sandbox.getHost(3220))).status
      await until(async () => (await status()) === 200, { what: 'the server' })
      await sandbox.pause()
      assert.equal(await stateOf(sandbox), 'paused')
      const statuses = await Promise.all(Array.from({ length: 5 }, status))
      assert.deepEqual(statuses, [200, 200, 200, 200, 200])
      assert.equal(await stateOf(sandbox), 'running')
      await sandbox.pause()
      assert.equal(await output(sandbox, 'echo awake'), 'awake')
    },
    { lifecycle: { onTimeout: 'pause', autoResume: true } }
  )
})

test('snapshots: create, list, use, delete', async () => {
  await withSandbox(async (sandbox) => {
    await sandbox.files.write('kept.txt', 'kept')
    const { snapshotId } = await sandbox.createSnapshot()
    assert.match(snapshotId, /:default$/)
    const listed = await Sandbox.listSnapshots({ sandboxId: sandbox.sandboxId }).nextItems()
    assert.deepEqual(listed.map((s) => s.snapshotId), [snapshotId])
    await withCopy(snapshotId, async (copy) => {
      assert.notEqual(copy.sandboxId, sandbox.sandboxId)
      assert.equal(await copy.files.read('kept.txt'), 'kept')
      assert.equal(await output(copy, 'echo $E2B_SANDBOX_ID'), copy.sandboxId)
    })
    assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(snapshotId), false)
    await rejectsWith(Sandbox.create(snapshotId), 'SandboxError', /404/)
  })
})

async function withCopy(template, body) {
  const copy = await Sandbox.create(template, { timeoutMs: 60_000 })
  try {
    await body(copy)
  } finally {
    await copy.kill()
  }
}

test('forks run at once', async () => {
  await withSandbox(async (sandbox) => {
    const process = await background(sandbox, 'exec sleep 1000')
    process.wait().catch(() => {})
    const { endAt } = await sandbox.getInfo()
    const forks = await sandbox.fork({ count: 2, timeoutMs: 60_000 })
    try {
      assert.ok(forks.every((fork) => !(fork instanceof Error)), String(forks))
      assert.equal(new Set([sandbox, ...forks].map((s) => s.sandboxId)).size, 3)
      for (const fork of forks) {
        assert.ok((await pids(fork)).includes(process.pid))
        await fork.files.write('mine.txt', fork.sandboxId)
      }
      for (const fork of forks) assert.equal(await fork.files.read('mine.txt'), fork.sandboxId)
      assert.deepEqual((await sandbox.getInfo()).endAt, endAt)
    } finally {
      for (const fork of forks) await fork.kill?.()
    }
    await sandbox.pause()
    await rejectsWith(sandbox.fork(), 'SandboxError', /resume it first/)
  })
})
