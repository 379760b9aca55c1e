// kafkajs, with the snappy codec that its documentation names. See cells.py for what is asked.
'use strict'

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const version = require('kafkajs/package.json').version

CompressionCodecs[CompressionTypes.Snappy] = snappy

const NAME = 'kafkajs'
const SOON = 20000
const RECORDS = 500
const PARTITIONS = 4
const SHARE = 25
// Young enough for retention.
const START = Date.now() - 3600000
const CODECS = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
}

const kafka = new Kafka({ clientId: NAME, brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
const admin = kafka.admin()
const topic = kind => `${NAME}-${kind}`
const value = n => `a line worth compressing, number ${n}`
const numbers = count => [...Array(count).keys()]
const say = line => console.log(JSON.stringify(line))

class Unsupported extends Error {}

function check(what, found, expected) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)]
  if (a !== b) throw new Error(`${what}: expected ${b}, found ${a}`)
}

async function waitFor(what, look) {
  const deadline = Date.now() + SOON
  while (Date.now() < deadline) {
    const found = look()
    if (found) return found
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`waited ${SOON} ms in vain: ${what}`)
}

async function send(name, messages, compression, config = {}) {
  const producer = kafka.producer({ allowAutoTopicCreation: false, ...config })
  await producer.connect()
  try {
    return await producer.send({ topic: name, acks: -1, compression, messages })
  } finally {
    await producer.disconnect()
  }
}

async function produce(codec) {
  const messages = numbers(RECORDS).map(n => ({ key: 'k', partition: 0, timestamp: `${START + n}`, value: value(n) }))
  try {
    const [sent] = await send(topic(codec), messages, CODECS[codec], { idempotent: true })
    check('base offset', sent.baseOffset, '0')
  } catch (error) {
    if (error.name === 'KafkaJSNotImplemented') throw new Unsupported(`${error.name}: ${error.message}`)
    throw error
  }
}

// A consumer that collects what it reads, and which partitions it has.
async function reading(group, name, config = {}) {
  const consumer = kafka.consumer({ groupId: `${NAME}-${group}`, sessionTimeout: 6000, heartbeatInterval: 200, ...config })
  const reader = { consumer, found: [], partitions: [] }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => { reader.partitions = payload.memberAssignment[name] || [] })
  consumer.on(consumer.events.REBALANCING, () => { reader.partitions = [] })
  await consumer.connect()
  await consumer.subscribe({ topic: name, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      reader.found.push({ partition, offset: message.offset, value: message.value.toString() })
    },
  })
  return reader
}

async function readAll(group, name, count, config) {
  const reader = await reading(group, name, config)
  await waitFor(`${count} records of ${name}`, () => reader.found.length >= count)
  await reader.consumer.disconnect()
  return reader.found
}

const committed = async (group, name) => {
  const [told] = await admin.fetchOffsets({ groupId: `${NAME}-${group}`, topics: [name] })
  return told.partitions.sort((a, b) => a.partition - b.partition).map(each => each.offset)
}

const cells = {
  async consume() {
    for (const codec of ['none', 'gzip', 'snappy']) {
      const found = await readAll(`consume-${codec}`, topic(codec), RECORDS)
      check(codec, found.map(each => each.value), numbers(RECORDS).map(value))
    }
  },

  async group() {
    const messages = numbers(PARTITIONS).flatMap(partition => numbers(SHARE).map(n => ({ partition, value: value(n) })))
    await send(topic('shared'), messages)
    const reader = await reading('group', topic('shared'))
    await waitFor('all records', () => reader.found.length >= messages.length)
    check('records', new Set(reader.found.map(each => `${each.partition} ${each.offset}`)).size, messages.length)
    const offsets = numbers(PARTITIONS).map(partition => ({ topic: topic('shared'), partition, offset: `${SHARE}` }))
    await reader.consumer.commitOffsets(offsets)
    await reader.consumer.disconnect()
    check('committed', await committed('group', topic('shared')), numbers(PARTITIONS).map(() => `${SHARE}`))
  },

  async rejoin() {
    const all = reader => reader.partitions.length === PARTITIONS
    const first = await reading('rejoin', topic('shared'))
    await waitFor('one has all', () => all(first))
    const second = await reading('rejoin', topic('shared'))
    const both = () => new Set([...first.partitions, ...second.partitions]).size === PARTITIONS
    await waitFor('two share', () => both() && first.partitions.length === 2 && second.partitions.length === 2)
    await first.consumer.disconnect()
    await waitFor('one has all again', () => all(second))
    await second.consumer.disconnect()
  },

  async earliest() {
    const [told] = await admin.fetchTopicOffsets(topic('none'))
    check('earliest', told.low, '0')
  },

  async latest() {
    const [told] = await admin.fetchTopicOffsets(topic('none'))
    check('latest', told.high, `${RECORDS}`)
  },

  async time() {
    const [told] = await admin.fetchTopicOffsetsByTimestamp(topic('none'), START + 400)
    check('by time', told.offset, '400')
  },

  async max_timestamp() {
    try {
      const told = await admin.fetchTopicOffsetsByTimestamp(topic('times'), -3)
      throw new Error(`it asks for the greatest timestamp now, and got ${JSON.stringify(told)}`)
    } catch (error) {
      if (!error.name.startsWith('KafkaJS')) throw error
      throw new Unsupported(`${error.name}: ${error.message}`)
    }
  },

  async transaction() {
    const producer = kafka.producer({ transactionalId: `${NAME}-1`, maxInFlightRequests: 1, idempotent: true })
    await producer.connect()
    for (const n of [0, 1]) {
      const transaction = await producer.transaction()
      await transaction.send({ topic: topic('transaction'), messages: [{ partition: 0, value: value(n) }] })
      const topics = [{ topic: topic('none'), partitions: [{ partition: 0, offset: `${100 + n}` }] }]
      await transaction.sendOffsets({ consumerGroupId: `${NAME}-transaction`, topics })
      await (n === 0 ? transaction.commit() : transaction.abort())
    }
    await producer.disconnect()
    check('offset of the transaction', await committed('transaction', topic('none')), ['100'])
    const last = { partition: 0, value: 'behind' }
    await send(topic('transaction'), [last])
    const uncommitted = await readAll('uncommitted', topic('transaction'), 3, { readUncommitted: true })
    check('read_uncommitted', uncommitted.map(each => each.value), [value(0), value(1), 'behind'])
    const read = await readAll('committed', topic('transaction'), 2)
    check('read_committed', read.map(each => each.value), [value(0), 'behind'])
  },

  async admin() {
    const name = topic('made')
    const configEntries = [{ name: 'retention.ms', value: '60000' }]
    await admin.createTopics({ topics: [{ topic: name, numPartitions: 3, configEntries }] })
    const { topics: [described] } = await admin.fetchTopicMetadata({ topics: [name] })
    check('partitions', described.partitions.length, 3)
    const { resources: [resource] } = await admin.describeConfigs({
      includeSynonyms: false, resources: [{ type: 2, name, configNames: ['retention.ms'] }],
    })
    check('retention.ms', resource.configEntries[0].configValue, '60000')
    const { groups } = await admin.listGroups()
    check('group', groups.some(group => group.groupId === `${NAME}-group`), true)
    await admin.deleteGroups([`${NAME}-group`])
    await admin.deleteTopics({ topics: [name] })
    check('deleted', (await admin.listTopics()).includes(name), false)
  },
}

async function main() {
  say({ version })
  await admin.connect()
  const all = { ...Object.fromEntries(Object.keys(CODECS).map(codec => [codec, () => produce(codec)])), ...cells }
  for (const [cell, run] of Object.entries(all)) {
    try {
      await run()
      say({ cell, result: 'passed' })
    } catch (error) {
      const result = error instanceof Unsupported ? 'unsupported' : 'failed'
      if (result === 'failed') console.error(error)
      say({ cell, result, reason: `${error.message}` })
    }
  }
  process.exit(0) // whatever a client still holds open
}

main()
