#!/usr/bin/env python3
"""confluent-kafka-python against a broker with TLS and logins: each mechanism, certificates, and who is
refused. The folder has ca.pem, other-ca.pem, client.pem, client.key, expired.pem and expired.key; the
topic `mine` may be written and read by `ann` (password "correct horse") and by the certificate's user,
`theirs` by neither."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

BROKER, FOLDER = sys.argv[1:3]
SOON = 15


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected!r}, found {found!r}")


def settings(**more):
    """Settings over TLS; a name's underscores are dots."""
    base = {"bootstrap.servers": BROKER, "security.protocol": "SASL_SSL", "ssl.ca.location": f"{FOLDER}/ca.pem"}
    return base | {name.replace("_", "."): value for name, value in more.items()}


def login(mechanism, password="correct horse", user="ann", **more):
    return settings(sasl_mechanism=mechanism, sasl_username=user, sasl_password=password, **more)


def certificate(name):
    files = {"ssl_certificate_location": f"{FOLDER}/{name}.pem", "ssl_key_location": f"{FOLDER}/{name}.key"}
    return settings(security_protocol="SSL", **files)


def produce(config, topic, value):
    """Sends one record; returns its offset, or the error."""
    outcome = []
    producer = Producer(config | {"message.timeout.ms": 10_000})
    producer.produce(topic, value, partition=0, on_delivery=lambda error, message: outcome.append(error or message.offset()))
    producer.flush(SOON)
    return outcome[0]


def consume(config, topic, offset):
    reader = Consumer(config | {"group.id": "ann", "enable.auto.commit": False, "auto.offset.reset": "error"})
    reader.assign([TopicPartition(topic, 0, offset)])
    message = reader.poll(SOON)
    reader.close()
    if message is None or message.error():
        sys.exit(f"reading {topic}: {message and message.error()}")
    return message.value().decode()


def refusal(config):
    """The first error that a client with these settings reports."""
    errors = []
    # One attempt: who fails often is put off without a word.
    once = {"reconnect.backoff.ms": 10_000, "reconnect.backoff.max.ms": 10_000}
    producer = Producer(config | once | {"error_cb": lambda error: errors.append(error.code())})
    until = time.monotonic() + SOON
    while not errors and time.monotonic() < until:
        producer.poll(0.1)
        try:
            producer.list_topics(timeout=1)
        except KafkaException:
            pass
        else:
            return None
    return errors[0] if errors else "nothing"


def main():
    for number, config in enumerate([*map(login, ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]), certificate("client")]):
        check("offset", produce(config, "mine", f"record {number}"), number)
        check("record", consume(config, "mine", number), f"record {number}")
        denied = produce(config, "theirs", "x")
        check("another's topic", denied.code(), KafkaError.TOPIC_AUTHORIZATION_FAILED)
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]:
        check(f"wrong password, {mechanism}", refusal(login(mechanism, "wrong horse")), KafkaError._AUTHENTICATION)
        check(f"unknown user, {mechanism}", refusal(login(mechanism, user="bob")), KafkaError._AUTHENTICATION)
    # Which of these librdkafka says depends on who ends the connection first.
    not_let_in = (KafkaError._SSL, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
    wrong_ca = refusal(login("SCRAM-SHA-512", ssl_ca_location=f"{FOLDER}/other-ca.pem"))
    check(f"wrong authority, {wrong_ca}", wrong_ca in not_let_in, True)
    expired = refusal(certificate("expired"))
    check(f"expired certificate, {expired}", expired in not_let_in, True)


main()
