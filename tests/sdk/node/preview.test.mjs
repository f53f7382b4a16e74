// Traffic into a sandbox by host name.
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { assert, fetchByHost, server, sharedSandbox, test, until, withSandbox } from './helpers.mjs'

const sandbox = sharedSandbox()

const WEB = `
const http = require('http'), crypto = require('crypto')
const web = http.createServer((q, s) => {
  let length = 0
  q.on('data', (d) => (length += d.length)).on('end', () => {
    s.setHeader('x-served-by', 'sandbox')
    s.end(JSON.stringify({ path: q.url, host: q.headers.host, method: q.method, length }))
  })
})
web.on('upgrade', (q, socket) => {
  const magic = q.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
  const accept = crypto.createHash('sha1').update(magic).digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
    'Sec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
  socket.write(Buffer.from([0x81, 5, ...Buffer.from('hello')]))
  socket.on('error', () => {})
})
web.listen(Number(process.argv[2]), process.argv[3])
`

async function serve(box, port, address = '127.0.0.1') {
  await box.files.write('/tmp/web.cjs', WEB)
  await box.commands.run(`node /tmp/web.cjs ${port} ${address}`, { background: true, timeoutMs: 0 })
  const host = box.getHost(port)
  await until(async () => (await fetchByHost(host)).status === 200, { what: `the server on ${address}:${port}` })
  return host
}

test('servers on any local address', async () => {
  for (const [port, address] of [[3301, '127.0.0.1'], [3302, '0.0.0.0'], [3303, '::1']]) {
    const host = await serve(sandbox(), port, address)
    assert.ok(host.startsWith(`${port}-${sandbox().sandboxId}.`) && host.endsWith(`:${server.port}`))
    const answer = await fetchByHost(host, '/x?y=1', { method: 'POST', body: 'z'.repeat(1_000_000) })
    assert.deepEqual(answer.json(), { path: '/x?y=1', host, method: 'POST', length: 1_000_000 })
    assert.equal(answer.headers['x-served-by'], 'sandbox')
  }
})

test('closed port', async () => {
  const answer = await fetchByHost(sandbox().getHost(3999))
  assert.equal(answer.status, 502)
  assert.deepEqual(answer.json(), {
    sandboxId: sandbox().sandboxId,
    message: 'The sandbox is running but port is not open',
    port: 3999,
    code: 502,
  })
})

test('a sandbox that is gone', async () => {
  let host, id
  await withSandbox(async (fresh) => {
    host = fresh.getHost(3000)
    id = fresh.sandboxId
  })
  const answer = await fetchByHost(host)
  assert.equal(answer.status, 502)
  assert.deepEqual(answer.json(), { sandboxId: id, message: 'The sandbox was not found', code: 502 })
})

test('WebSocket', async () => {
  const host = await serve(sandbox(), 3304)
  const socket = new WebSocket(`ws://${server.host}/`, { headers: { Host: host }, handshakeTimeout: 20_000 })
  const [data] = await once(socket, 'message')
  assert.equal(data.toString(), 'hello')
  socket.terminate()
})
