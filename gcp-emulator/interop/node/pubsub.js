// Google's Node client for Pub/Sub, used as anyone would use it, against the emulator.
//
//     PUBSUB_EMULATOR_HOST=HOST:PORT node pubsub.js

import assert from 'node:assert/strict';
import {randomUUID} from 'node:crypto';
import {setTimeout as pause} from 'node:timers/promises';

import {AckResponses, PubSub, v1} from '@google-cloud/pubsub';

const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;

const pubsub = new PubSub({projectId: 'interop'});

async function newTopic(options) {
  const [topic] = await pubsub.createTopic({name: `topic-${randomUUID()}`, ...options});
  return topic;
}

async function newSubscription(topic, options) {
  const [subscription] = await topic.createSubscription(`subscription-${randomUUID()}`, options);
  return subscription;
}

/** Listens until `enough(messages)`; answers the messages. `handle` settles each of them. */
async function receive(subscription, enough, handle) {
  const messages = [];
  let limit;
  try {
    await new Promise((resolve, reject) => {
      limit = setTimeout(
        () => reject(new Error(`only ${messages.length} messages arrived within 30 s`)),
        30_000
      );
      subscription.on('error', reject);
      subscription.on('message', message => {
        messages.push(message);
        try {
          handle(message, messages);
        } catch (error) {
          reject(error);
        }
        if (enough(messages)) {
          resolve();
        }
      });
    });
    // Long enough for a copy under way to arrive.
    await pause(500);
  } finally {
    clearTimeout(limit);
    await subscription.close();
  }
  return messages;
}

const checks = {
  'a topic is created once, read, listed and deleted': async () => {
    const topic = await newTopic({labels: {team: 'orders'}});
    await assert.rejects(pubsub.createTopic(topic.name), {code: ALREADY_EXISTS});
    const [metadata] = await topic.getMetadata();
    assert.deepEqual(metadata.labels, {team: 'orders'});
    const [topics] = await pubsub.getTopics();
    assert.equal(topics.filter(listed => listed.name === topic.name).length, 1);
    await topic.delete();
    await assert.rejects(topic.getMetadata(), {code: NOT_FOUND});
  },

  'batched messages arrive once each, with attributes and ids': async () => {
    const topic = await newTopic();
    const subscription = await newSubscription(topic);
    topic.setPublishOptions({batching: {maxMessages: 100, maxMilliseconds: 20}});
    const payloads = Array.from({length: 1000}, (_, number) => `message ${number}`);
    const ids = await Promise.all(
      payloads.map((payload, number) =>
        topic.publishMessage({data: Buffer.from(payload), attributes: {number: `${number}`}})
      )
    );
    assert.equal(new Set(ids).size, 1000);
    const messages = await receive(
      subscription,
      all => all.length >= 1000,
      message => message.ack()
    );
    assert.equal(messages.length, 1000);
    const received = new Map(messages.map(message => [message.id, message]));
    ids.forEach((id, number) => {
      assert.equal(received.get(id).data.toString(), payloads[number]);
      assert.equal(received.get(id).attributes.number, `${number}`);
    });
  },

  'a nacked message comes again with the same id': async () => {
    const topic = await newTopic();
    const subscription = await newSubscription(topic);
    const id = await topic.publishMessage({data: Buffer.from('again')});
    const messages = await receive(
      subscription,
      all => all.length >= 3,
      (message, all) => (all.length < 3 ? message.nack() : message.ack())
    );
    assert.deepEqual(
      messages.map(message => message.id),
      [id, id, id]
    );
  },

  'messages of one ordering key arrive in the order of publishing': async () => {
    const topic = await newTopic();
    const subscription = await newSubscription(topic, {enableMessageOrdering: true});
    topic.setPublishOptions({messageOrdering: true});
    await Promise.all(
      Array.from({length: 350}, (_, number) =>
        topic.publishMessage({data: Buffer.from(`${number}`), orderingKey: `key-${number % 7}`})
      )
    );
    const messages = await receive(
      subscription,
      all => all.length >= 350,
      message => message.ack()
    );
    const runs = new Map();
    for (const {orderingKey, data} of messages) {
      runs.set(orderingKey, [...(runs.get(orderingKey) ?? []), Number(data)]);
    }
    assert.equal(runs.size, 7);
    for (const [key, run] of runs) {
      const first = Number(key.slice('key-'.length));
      assert.deepEqual(
        run,
        Array.from({length: 50}, (_, number) => first + 7 * number)
      );
    }
  },

  'an exactly-once subscription confirms acks': async () => {
    const topic = await newTopic();
    const subscription = await newSubscription(topic, {enableExactlyOnceDelivery: true});
    const ids = await Promise.all(
      Array.from({length: 50}, (_, number) =>
        topic.publishMessage({data: Buffer.from(`${number}`)})
      )
    );
    const answers = [];
    const messages = await receive(
      subscription,
      all => all.length >= 50,
      message => answers.push(message.ackWithResponse())
    );
    assert.deepEqual(messages.map(message => message.id).sort(), ids.sort());
    assert.deepEqual(new Set(await Promise.all(answers)), new Set([AckResponses.Success]));
  },

  'a message that is nacked five times goes to the dead-letter topic': async () => {
    const graveyard = await newTopic();
    const buried = await newSubscription(graveyard);
    const topic = await newTopic();
    const subscription = await newSubscription(topic, {
      deadLetterPolicy: {deadLetterTopic: graveyard.name, maxDeliveryAttempts: 5},
    });
    await topic.publishMessage({data: Buffer.from('poison'), attributes: {kind: 'bad'}});
    const attempts = await receive(
      subscription,
      all => all.length >= 5,
      message => message.nack()
    );
    assert.deepEqual(
      attempts.map(message => message.deliveryAttempt),
      [1, 2, 3, 4, 5]
    );
    const [letter] = await receive(
      buried,
      all => all.length >= 1,
      message => message.ack()
    );
    assert.equal(letter.data.toString(), 'poison');
    assert.equal(letter.attributes.kind, 'bad');
    assert.equal(letter.attributes.CloudPubSubDeadLetterSourceDeliveryCount, '5');
  },

  'unary pull and ack work': async () => {
    const topic = await newTopic();
    const subscription = await newSubscription(topic);
    await topic.publishMessage({data: Buffer.from('one')});
    const client = new v1.SubscriberClient({
      ...(await pubsub.getClientConfig()),
      projectId: 'interop',
    });
    const [answer] = await client.pull({subscription: subscription.name, maxMessages: 10});
    assert.deepEqual(
      answer.receivedMessages.map(({message}) => message.data.toString()),
      ['one']
    );
    const ackIds = answer.receivedMessages.map(({ackId}) => ackId);
    await client.acknowledge({subscription: subscription.name, ackIds});
    await client.close();
  },

  'seeking back in time brings acknowledged messages again': async () => {
    const topic = await newTopic();
    const subscription = await newSubscription(topic, {retainAckedMessages: true});
    const start = new Date(Date.now() - 1000);
    const id = await topic.publishMessage({data: Buffer.from('one')});
    const once = {enough: all => all.length >= 1, handle: message => message.ack()};
    const [first] = await receive(subscription, once.enough, once.handle);
    assert.equal(first.id, id);
    await subscription.seek(start);
    const again = pubsub.subscription(subscription.name);
    const [second] = await receive(again, once.enough, once.handle);
    assert.equal(second.id, id);
  },

  'a missing topic or subscription ends the call with NOT_FOUND': async () => {
    const publishing = pubsub.topic('nowhere').publishMessage({data: Buffer.from('x')});
    await assert.rejects(publishing, {code: NOT_FOUND});
    const subscription = pubsub.subscription('nowhere');
    const receiving = receive(
      subscription,
      () => false,
      () => {}
    );
    await assert.rejects(receiving, {code: NOT_FOUND});
  },
};

let failed = 0;
for (const [claim, check] of Object.entries(checks)) {
  const begun = performance.now();
  try {
    await check();
    console.log(`ok      ${claim} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${claim}`);
    console.log(error);
  }
}
const count = Object.keys(checks).length;
console.log(`${count - failed} of ${count} checks passed`);
process.exit(failed === 0 ? 0 : 1);
