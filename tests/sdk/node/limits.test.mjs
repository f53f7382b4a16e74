// A key that asks too often: newer SDKs wait as long as Retry-After says, older ones tell at once.
import { spawnSync } from 'node:child_process'
import { assert, isLatest, packageName, test } from './helpers.mjs'

const client = `
  import { Sandbox, RateLimitError } from '${packageName}'
  let refused = 0
  const begin = Date.now()
  const ask = async () => {
    try {
      await Sandbox.kill('inosuchsandbox')
    } catch (error) {
      if (!(error instanceof RateLimitError)) throw error
      refused++
    }
  }
  for (let i = 0; i < 4; i++) await ask()
  // On a slow machine those were no faster than they may be.
  if (${!isLatest}) await Promise.all(Array.from({ length: 20 }, ask))
  console.log('result ' + JSON.stringify({ refused, ms: Date.now() - begin }))
`

test('a refusal with Retry-After is understood', () => {
  const settings = ['--set', 'rate_limit=1', '--set', 'rate_burst=1']
  const done = spawnSync(
    'python3',
    ['../../support/server.py', ...settings.map((s) => `--serve-arg=${s}`), '--', 'node',
      '--input-type=module', '--eval', client],
    { cwd: import.meta.dirname, encoding: 'utf8', timeout: 120_000 },
  )
  assert.equal(done.status, 0, done.stderr)
  const { refused, ms } = JSON.parse(/^result (.*)$/m.exec(done.stdout)[1])
  if (isLatest) {
    assert.equal(refused, 0)
    assert.ok(ms >= 2000, `four requests at one per second came through within ${ms} ms`)
  } else {
    assert.ok(refused >= 1)
  }
}, { timeout: 150_000 })
