"""What the demo says when it stays up: where everything is, and what to try."""

import signal

from postgres import ADMIN, ADMIN_PASSWORD, DATABASE

TEXT = """
Everything is up, and stays up until Ctrl-C:

  PostgreSQL   127.0.0.1:{postgres}, database {database}, user {admin}, password {password}
  Kafka        {kafka}, topic {name}
  REST         http://{http}
  Stream       ws://{http}/services/v2/stream/{name}
  Logs         {folder}

Try next, each in another terminal:

1. Change something in the source:
   PGPASSWORD={password} psql -h 127.0.0.1 -p {postgres} -U {admin} {database} \\
     -c "UPDATE customers SET name = 'Ada' WHERE id = 1"

2. See the changes as they commit:
   {highwater} --url http://{http} stream tail {name}

3. Read the log with any Kafka client:
   kcat -C -b {kafka} -t {name} -o -5 -e -f '%o %k %s\\n  %h\\n'

4. Stop the connector, show its offset, move it forward to what is committed now, and resume:
   curl -X PUT http://{http}/connectors/{name}/stop
   curl http://{http}/connectors/{name}/offsets
   NOW=$(PGPASSWORD={password} psql -XAt -h 127.0.0.1 -p {postgres} -U {admin} {database} \\
     -c 'SELECT pg_current_wal_lsn()')
   curl -X PATCH 'http://{http}/connectors/{name}/offsets?allowSkip=true&reason=demo' \\
     -H 'Content-Type: application/json' \\
     -d '{{"offsets": [{{"partition": {{"server": "{name}"}}, "offset": {{"lsn": "'$NOW'"}}}}]}}'
   curl -X PUT http://{http}/connectors/{name}/resume

5. See whether anything needs attention:
   {highwater} --url http://{http} doctor

6. Replay the stream from its first record:
   {highwater} --url http://{http} stream tail {name} --begin earliest --count 20
"""


def stay(demo):
    """Prints the text and waits for a signal, which main turns into the end."""
    name, http = demo.name, demo.server.http
    text = TEXT.format(
        postgres=demo.postgres.port, database=DATABASE, admin=ADMIN, password=ADMIN_PASSWORD,
        kafka=demo.kafka.address, http=http, name=name, folder=demo.folder,
        highwater=demo.server.binary,
    )  # fmt: skip
    print(text, flush=True)
    while True:
        signal.pause()
