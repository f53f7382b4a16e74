// Watches, terminals, and a sandbox that dies under its clients.
import { assert, begin, e2b, makeWorkdir, rejectsWith, Sandbox, sharedSandbox, test, until, within, withSandbox } from './helpers.mjs'

const sandbox = sharedSandbox()
const DIED = /The sandbox was killed or reached its end of life while the request was in flight/

async function watch(dir, options) {
  const events = []
  const handle = await sandbox().files.watchDir(dir, (event) => events.push(event), options)
  const seen = (type, name) =>
    until(() => events.find((e) => e.type === type && e.name === name), {
      what: `${type} of ${name} in ${JSON.stringify(events.map((e) => [e.type, e.name]))}`,
    })
  return { events, handle, seen }
}

test('watch: create, write, rename, chmod, remove', async () => {
  const dir = await makeWorkdir(sandbox())
  const { handle, seen } = await watch(dir)
  await sandbox().files.write(`${dir}/a b`, '1')
  await seen('create', 'a b')
  await seen('write', 'a b')
  await sandbox().commands.run(`cd ${dir} && chmod 600 'a b' && mv 'a b' c && rm c`)
  await seen('chmod', 'a b')
  await seen('rename', 'a b')
  await seen('create', 'c')
  await seen('remove', 'c')
  await handle.stop()
})

test('watch: recursive, with directories made later', async () => {
  const dir = await makeWorkdir(sandbox())
  await sandbox().files.makeDir(`${dir}/old`)
  const { events, handle, seen } = await watch(dir, { recursive: true, includeEntry: true })
  await sandbox().files.write(`${dir}/old/f`, '1')
  const event = await seen('write', 'old/f')
  assert.equal(event.entry.path, `${dir}/old/f`)
  await sandbox().files.makeDir(`${dir}/new`)
  await seen('create', 'new')
  await sandbox().files.write(`${dir}/new/g`, '1')
  await seen('write', 'new/g')
  await handle.stop()
  assert.ok(events.length >= 4)
})

test('watch: not recursive, errors, end by timeout', async () => {
  const dir = await makeWorkdir(sandbox())
  await sandbox().files.makeDir(`${dir}/sub`)
  const { events, handle, seen } = await watch(dir)
  await sandbox().files.write(`${dir}/sub/f`, '1')
  await sandbox().files.write(`${dir}/g`, '1')
  assert.equal((await seen('create', 'g')).entry, undefined)
  assert.ok(!events.some((e) => e.name.includes('/')))
  await handle.stop()
  await rejectsWith(watch(`${dir}/none`), 'FileNotFoundError')
  await rejectsWith(watch(`${dir}/g`), 'InvalidArgumentError')
  const error = await within(
    new Promise((resolve, reject) => {
      // So long may its start take on a busy machine.
      sandbox().files.watchDir(dir, () => {}, { timeoutMs: 4_000, onExit: resolve }).catch(reject)
    })
  )
  assert.ok(error instanceof e2b.TimeoutError)
})

async function terminal(options = {}) {
  let output = ''
  const decoder = new TextDecoder()
  const handle = await sandbox().pty.create({
    cols: 80,
    rows: 24,
    onData: (data) => {
      output += decoder.decode(data, { stream: true })
    },
    ...options,
  })
  return {
    handle,
    send: (text) => sandbox().pty.sendInput(handle.pid, new TextEncoder().encode(text)),
    expect: (text) =>
      until(() => output.includes(text), { what: JSON.stringify(text) }).catch((error) => {
        throw new Error(`${error.message}; output: ${JSON.stringify(output.slice(-1000))}`)
      }),
  }
}

test('pty: size, environment, input, exit', async () => {
  const { handle, send, expect } = await terminal({ cols: 111, rows: 33, cwd: '/tmp', envs: { MARK: 'seen' } })
  await send('stty size; echo $MARK:$TERM:$LANG:$(pwd)\n')
  await expect('33 111')
  await expect('seen:xterm-256color:C.UTF-8:/tmp')
  await send('exit 3\n')
  await assert.rejects(within(handle.wait()), (error) => error.exitCode === 3)
})

test('pty: resize and kill', async () => {
  const { handle, send, expect } = await terminal()
  await send('echo ready$((1+1))\n')
  await expect('ready2')
  await sandbox().pty.resize(handle.pid, { cols: 132, rows: 50 })
  await send('tput cols; tput lines\n')
  await expect('132\r\n50')
  assert.equal(await sandbox().pty.kill(handle.pid), true)
  await assert.rejects(within(handle.wait()), (error) => error.exitCode === -1)
  await until(async () => (await sandbox().pty.kill(handle.pid)) === false)
})

test('pty: a second connection', async () => {
  const { handle, send, expect } = await terminal()
  await send('echo first$((20+3))\n')
  await expect('first23')
  let output = ''
  const other = await sandbox().pty.connect(handle.pid, {
    onData: (data) => {
      output += Buffer.from(data).toString()
    },
  })
  await send('echo second$((40+5))\n')
  await expect('second45')
  await until(() => output.includes('second45'))
  await send('exit\n')
  assert.equal((await within(handle.wait())).exitCode, 0)
  assert.equal((await within(other.wait())).exitCode, 0)
})

test('killed under a foreground command', async () => {
  await withSandbox(async (fresh) => {
    const { ended } = await begin(fresh)
    assert.equal(await fresh.kill(), true)
    await rejectsWith(within(ended), 'TimeoutError', DIED)
  })
})

test('killed under a terminal and a watch', async () => {
  await withSandbox(async (fresh) => {
    const pty = await fresh.pty.create({ cols: 80, rows: 24, onData: () => {} })
    let exit
    const watchEnd = new Promise((resolve) => (exit = resolve))
    await fresh.files.watchDir('/home/user', () => {}, { onExit: exit })
    assert.equal(await Sandbox.kill(fresh.sandboxId), true)
    await rejectsWith(within(pty.wait()), 'TimeoutError', DIED)
    const error = await within(watchEnd)
    assert.ok(error instanceof e2b.TimeoutError, `${error}`)
    assert.match(error.message, DIED)
  })
})

test('expired under a command', async () => {
  const fresh = await Sandbox.create({ timeoutMs: 300_000 })
  const { ended } = await begin(fresh)
  await fresh.setTimeout(2_000)
  await rejectsWith(within(ended), 'TimeoutError', DIED)
  assert.equal(await fresh.isRunning(), false)
})
