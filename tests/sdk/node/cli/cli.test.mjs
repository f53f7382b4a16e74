// A user of the E2B CLI: every sandbox command that needs nothing but a server.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test as nodeTest } from 'node:test'

const cli = join(import.meta.dirname, 'node_modules/.bin/e2b')
const home = mkdtempSync(join(tmpdir(), 'caisson-cli-'))
const env = { ...process.env, HOME: home, NO_UPDATE_NOTIFIER: '1', NO_COLOR: '1', TERM: 'xterm' }
let id

/** Runs a program to its end. `input` is its whole stdin; `talk` answers what it prints. */
function run(command, args, { input, talk = [], deadlineMs = 30_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: 'pipe' })
    const out = { status: null, stdout: '', stderr: '' }
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${args.join(' ')}: no end within ${deadlineMs} ms\n${JSON.stringify(out)}`))
    }, deadlineMs)
    const pending = [...talk]
    child.stdout.on('data', (data) => {
      out.stdout += data
      if (pending.length && out.stdout.includes(pending[0][0])) child.stdin.write(pending.shift()[1])
    })
    child.stderr.on('data', (data) => (out.stderr += data))
    child.stdin.on('error', () => {}) // it may end before it has read everything
    child.on('error', reject)
    child.on('close', (status) => {
      clearTimeout(timer)
      resolve({ ...out, status })
    })
    if (!talk.length) child.stdin.end(input ?? '')
  })
}

const e2b = (args, options) => run(cli, args, options)
const sandbox = (args, options) => e2b(['sandbox', ...args], options)
const test = (name, body) => nodeTest(name, { timeout: 90_000 }, body)

async function ok(answer) {
  const result = await answer
  assert.equal(result.status, 0, JSON.stringify(result))
  return result.stdout
}

const lines = (text) => text.split('\n').filter((line) => line.trim().startsWith('{')).map(JSON.parse)

before(async () => {
  const printed = await ok(sandbox(['create', 'base', '--detach']))
  id = printed.match(/\bi[a-z0-9]{20}\b/)?.[0]
  assert.ok(id, printed)
})

after(async () => {
  if (id) await sandbox(['kill', id])
  rmSync(home, { recursive: true, force: true })
})

test('list shows the sandbox, as a table and as JSON', async () => {
  assert.match(await ok(sandbox(['list'])), new RegExp(`${id}\\s+base`))
  const listed = JSON.parse(await ok(sandbox(['list', '--format', 'json'])))
  const entry = listed.find((item) => item.sandboxId === id)
  assert.equal(entry.state, 'running')
  assert.equal(entry.templateId, 'base')
})

test('info', async () => {
  const info = JSON.parse(await ok(sandbox(['info', id, '--format', 'json'])))
  assert.equal(info.sandboxId, id)
  assert.equal(info.lifecycle.onTimeout, 'kill')
  assert.ok(new Date(info.endAt) > new Date(info.startedAt))
})

test('exec passes output and the exit code on', async () => {
  const result = await sandbox(['exec', id, '--', 'sh', '-c', 'echo out; echo err >&2; exit 3'])
  assert.equal(result.status, 3)
  assert.equal(result.stdout, 'out\n')
  assert.match(result.stderr, /^err\n/)
})

test('exec as another user, elsewhere, with a variable', async () => {
  const command = ['exec', '--user', 'root', '--cwd', '/tmp', '--env', 'A=b c', id]
  assert.equal(await ok(sandbox([...command, 'id -un; pwd; echo $A'])), 'root\n/tmp\nb c\n')
})

const inputs = {
  'a line': Buffer.from('hello\n'),
  'no line end': Buffer.from('hello'),
  nothing: Buffer.alloc(0),
  'a pipe and one byte': Buffer.alloc(65_537, 'a'),
  'two random megabytes': randomBytes(2_000_000)
}
for (const [name, input] of Object.entries(inputs)) {
  test(`exec reads stdin: ${name}`, async () => {
    const printed = await ok(sandbox(['exec', id, '--', 'sha256sum'], { input }))
    assert.equal(printed.split(' ')[0], createHash('sha256').update(input).digest('hex'))
  })
}

test('exec in the background returns at once', async () => {
  const begun = Date.now()
  await ok(sandbox(['exec', '--background', id, 'sleep 60']))
  assert.ok(Date.now() - begun < 20_000)
})

test('a terminal', async () => {
  // `script` gives the CLI a terminal of its own.
  const result = await run('script', ['-qec', `${cli} sandbox connect ${id}`, '/dev/null'], {
    talk: [
      ['$ ', 'echo $((6 * 7))-seen; whoami\r'],
      ['42-seen', 'exit\r']
    ]
  })
  assert.equal(result.status, 0, JSON.stringify(result))
  assert.match(result.stdout, /42-seen\r*\nuser\r*\n/)
})

test('metrics', async () => {
  const [first] = lines(await ok(sandbox(['metrics', id, '--format', 'json'])))
  assert.ok(first.cpuCount > 0 && first.memTotal > 0 && first.diskTotal > 0, JSON.stringify(first))
})

test('logs', async () => {
  const entries = lines(await ok(sandbox(['logs', id, '--format', 'json'])))
  assert.ok(entries.length > 0)
  for (const entry of entries) assert.match(entry.level, /^(debug|info|warn|error)$/)
})

test('template list', async () => {
  assert.match(await ok(e2b(['template', 'list'])), /\bbase\b/)
})

test('kill, and what follows', async () => {
  const made = (await ok(sandbox(['create', 'base', '--detach']))).match(/\bi[a-z0-9]{20}\b/)[0]
  assert.match(await ok(sandbox(['kill', made])), new RegExp(`${made} has been killed`))
  const listed = JSON.parse(await ok(sandbox(['list', '--format', 'json'])))
  assert.ok(!listed.some((item) => item.sandboxId === made))
  const again = await sandbox(['kill', made])
  assert.match(again.stdout + again.stderr, /wasn't found/)
  assert.equal((await sandbox(['info', made])).status, 1)
  assert.equal((await sandbox(['exec', made, 'true'])).status, 1)
})
