// The same three things in PouchDB (LevelDB on the disk), a line of JSON in, a line of JSON out.
const fs = require('fs')
const readline = require('readline')
const PouchDB = require(process.argv[2] + '/node_modules/pouchdb')

const bill = (number) => ({
  _id: String(number).padStart(20, '0'), type: 1, money: 12.34, category: 'food', time: '2026-02-18', remark: 'lunch with four'
})

async function firstSync (ask) {
  fs.rmSync(ask.replica, { recursive: true, force: true })
  const local = new PouchDB(ask.replica)
  const begun = performance.now()
  const done = await PouchDB.replicate(ask.http, local, { batch_size: 1000, batches_limit: 10 })
  const rate = done.docs_written / (performance.now() - begun) * 1000
  await local.close()
  return { rate, rows: done.docs_written }
}

async function drain (ask) {
  fs.rmSync(ask.replica, { recursive: true, force: true })
  const local = new PouchDB(ask.replica)
  const stamp = Date.now() * 100000
  const edits = Array.from({ length: ask.rows }, (_, number) => bill(stamp + number))
  await local.bulkDocs(edits)
  const begun = performance.now()
  const done = await PouchDB.replicate(local, ask.http, { batch_size: 1000, batches_limit: 10 })
  const rate = done.docs_written / (performance.now() - begun) * 1000
  await local.close()
  return { rate, rows: done.docs_written }
}

async function open (ask) {
  const begun = performance.now()
  const local = new PouchDB(ask.replica)
  const shown = await local.allDocs({ limit: 50, include_docs: true, descending: true })
  const ms = performance.now() - begun
  await local.close()
  return { ms, rows: shown.rows.length }
}

const work = { 'first-sync': firstSync, drain, open }

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const ask = JSON.parse(line)
    console.log(JSON.stringify({ rate: 0, ms: 0, ...await work[ask.what](ask) }))
  }
}
main().catch((error) => { console.error(error); process.exit(1) })
