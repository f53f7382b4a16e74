// What every file of the suite uses: the SDK under test, a shared sandbox, waiting with a deadline.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import { after, before, test as nodeTest } from 'node:test'

export const packageName = process.env.E2B_PACKAGE ?? 'e2b-latest'
export const isLatest = packageName === 'e2b-latest'
export const e2b = await import(packageName)
export const { Sandbox } = e2b
export { assert }

/** The server's address, for traffic by host name without DNS. */
export const server = new URL(process.env.E2B_API_URL)

/** A test with a deadline. */
export function test(name, run, options = {}) {
  nodeTest(name, { timeout: 150_000, ...options }, run)
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Polls until `condition` gives something true; throws at the deadline. */
export async function until(condition, { deadlineMs = 30_000, what = 'condition' } = {}) {
  const end = Date.now() + deadlineMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > end) throw new Error(`${what}: not seen within ${deadlineMs} ms`)
    await sleep(50)
  }
}

/** Fails instead of waiting for ever. */
export function within(promise, deadlineMs = 30_000) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing within ${deadlineMs} ms`)), deadlineMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** A sandbox for all tests of a file; read it through the returned function. */
export function sharedSandbox(options = {}) {
  let sandbox
  before(async () => {
    sandbox = await Sandbox.create({ timeoutMs: 1_800_000, ...options })
  })
  after(async () => {
    await sandbox?.kill()
  })
  return () => sandbox
}

/** Runs `body` with a sandbox of its own. */
export async function withSandbox(body, options = {}) {
  const sandbox = await Sandbox.create({ timeoutMs: 300_000, ...options })
  try {
    return await body(sandbox)
  } finally {
    await sandbox.kill()
  }
}

export const uniqueName = () => randomBytes(6).toString('hex')

/** A command that waits at `wait` goes on when it is opened, however slow the machine is. */
export function gate(sandbox) {
  const path = `/tmp/${uniqueName()}`
  return { wait: `until [ -e ${path} ]; do sleep 0.1; done`, open: () => sandbox.files.write(path, '') }
}

/** A command in the foreground that has begun: its client has heard of it, so it is in flight. */
export async function begin(sandbox) {
  let heard = false
  const ended = sandbox.commands.run('echo begun; sleep 300', { timeoutMs: 0, onStdout: () => (heard = true) })
  let over = false
  ended.catch(() => {}).finally(() => (over = true))
  await until(() => heard || over, { what: 'the first line of the command' })
  return { ended }
}

/** An empty directory in the sandbox. */
export async function makeWorkdir(sandbox) {
  const path = `/home/user/work-${uniqueName()}`
  assert.equal(await sandbox.files.makeDir(path), true)
  return path
}

/** Expects a rejection with an error class of the SDK and, if given, a text in its message. */
export async function rejectsWith(promise, className, text) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof e2b[className], `${error.constructor.name}: ${error.message}`)
    if (text) assert.match(error.message, text instanceof RegExp ? text : new RegExp(text))
    return true
  })
}

/** GET (or another method) by host name, connected to the server's address. */
export function fetchByHost(host, path = '/', { method = 'GET', headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: server.hostname, port: server.port, method, path, headers: { ...headers, Host: host } },
      (response) => {
        const pieces = []
        response.on('data', (piece) => pieces.push(piece))
        response.on('error', reject)
        response.on('end', () => {
          const data = Buffer.concat(pieces)
          resolve({
            status: response.statusCode,
            headers: response.headers,
            body: data,
            json: () => JSON.parse(data.toString()),
          })
        })
      }
    )
    request.setTimeout(30_000, () => request.destroy(new Error('no answer within 30 s')))
    request.on('error', reject)
    request.end(body)
  })
}
