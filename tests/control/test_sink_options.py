"""No option of a sink holds a secret: every spelling of a password is refused, and none is shown."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from rove.control.asks.requests import CloudSink, Submit, check_submit
from rove.control.sink_options import URL_PARAMETERS, check_options, check_url
from rove.model.errors import PlanError
from rove.model.messages import Sink

SECRETS = {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}  # of libpq
PLAIN = [
    "postgresql://rove@db/trams",
    "postgres://rove@db:5432,other:5433/trams?sslmode=require",
    "postgresql://us%40er@[::1]:5432/trams",
    "postgresql:///trams?host=/run/postgresql&user=rove",
    "postgresql://?service=trams",
    "postgresql://rove@db/trams?passfile=/run/secrets/trams&options=-c%20search_path%3Drove",
    "host=db user=rove dbname=trams",
    r"host = 'db' user='ro\'ve' application_name='a b'",
]
WITH_PASSWORD = [
    "postgresql://rove:hunter2@db/trams",
    "postgres://rove:hunter2@db:5432/trams?sslmode=require",
    "postgresql://:hunter2@db/trams",
    "postgresql://rove:hunter%32@db/trams",
    "postgresql://rove%3Ahunter2@db/trams",
    "postgresql://rove%3ahunter2@db/trams",
    "postgresql://db/trams?user=rove&password=hunter2",
    "postgresql://db/trams?user=rove&%70assword=hunter2",
    "postgresql://db/trams?user=rove%3Ahunter2",
    "postgresql://db/trams?PASSWORD=hunter2",
    "postgresql://db/trams?pasword=hunter2",
    "postgresql://db/trams?sslpassword=hunter2",
    "postgresql://db/trams?oauth_client_secret=hunter2",
    "postgresql://db/trams?scram_client_key=hunter2",
    "postgresql://db/trams?hunter2=1",
    "postgresql://rove@db/trams?dbname=postgresql%3A%2F%2Frove%3Ahunter2%40db%2Ftrams",
    "postgresql://rove@db/trams?options=-c%20password%3Dhunter2",
    "postgresql://rove:x@hunter2@db:1/trams",
    "postgresql://rove:12/hunter2@db:1/trams",
    "postgresql://rove:hunter2/y@db:1/trams",
    "postgresql://rove:hunter2%zz@db/trams",
    "postgresql://rove@db/trams#hunter2",
    "postgresql://rove@db%40hunter2/trams",
    "postgres//rove:hunter2@db/trams",
    "PostgreSQL://rove:hunter2@db/trams",
    " postgresql://rove:hunter2@db/trams",
    "jdbc:postgresql://db/trams?user=rove&password=hunter2",
    "rove:hunter2@db/trams",
    "host=db user=rove password=hunter2",
    "host=db user=rove password = 'hunter2'",
    "host=db user=rove PASSWORD=hunter2",
    r"host=db\ password=x user=rove password='hunter\'2'",
    "host=db\tpassword=hunter2",
    "host=db user=rove:hunter2",
    "host=rove:hunter2@db",
    "host=db dbname=postgresql://rove:hunter2@db/trams",
    "host=db sslpassword=hunter2",
    "hunter2",
]


@pytest.mark.parametrize("url", PLAIN)
def test_a_url_without_a_password_is_accepted_and_libpq_reads_none_in_it(url: str) -> None:
    check_url("trams", url)
    assert not SECRETS & set(conninfo_to_dict(url))


@pytest.mark.parametrize("url", WITH_PASSWORD)
def test_every_spelling_of_a_password_is_refused_and_not_shown(url: str) -> None:
    asked = Submit(
        name="q", plan=b"", sink=Sink(kind="log"), cloud=CloudSink(kind="postgres", name="trams", options={"url": url})
    )
    with pytest.raises(PlanError, match=r"option `url` of table trams ") as raised:
        check_submit(asked)
    assert "hunter" not in str(raised.value)


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "postgresql://",
                    "postgres://",
                    "rove",
                    "hunter2",
                    ":",
                    "@",
                    "/",
                    "?",
                    "&",
                    "=",
                    "password",
                    "%70",
                    "%3A",
                ),
                *("%40", " ", "'", "\\", "host", "user", "dbname", "[", "]", ",", "#", "1", "sslmode", "service", "\n"),
            ]
        ),
        max_size=14,
    ).map("".join)
)
def test_libpq_finds_no_secret_in_a_url_that_is_accepted(url: str) -> None:
    """Whatever is accepted, libpq reads it without a password, or does not read it."""
    try:
        check_url("trams", url)
    except PlanError:
        return
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:
        return
    assert set(found) <= set(URL_PARAMETERS)


def test_libpq_knows_the_parameters_that_a_url_may_have() -> None:
    known = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()} | {"ssl"}  # another word of urls
    assert set(URL_PARAMETERS) <= known
    assert not set(URL_PARAMETERS) & SECRETS


@pytest.mark.parametrize("kind", ["postgres", "table", "console", "memory", "noop", "foreachBatch"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", "hunter2"),
        ("Password", "hunter2"),
        ("fs.s3a.secret.key", "hunter2"),
        ("fs.s3a.access.key", "hunter2"),
        ("authToken", "hunter2"),
        ("dsn", "postgresql://rove:hunter2@db/trams"),
        ("dsn", "postgresql://rove%3Ahunter2%40db"),
        ("dsn", "host=db password = hunter2"),
        ("postgresql://rove:hunter2@db/trams?x", "1"),
    ],
)
def test_no_option_of_any_sink_holds_a_secret(kind: str, key: str, value: str) -> None:
    with pytest.raises(PlanError) as raised:
        check_options(kind, "trams", {key: value})
    assert "hunter2" not in str(raised.value)


def test_an_option_that_postgresqls_sink_does_not_have_is_refused() -> None:
    with pytest.raises(PlanError, match=r"`URL` is not an option of a table in PostgreSQL; .*did you mean `url`"):
        check_options("postgres", "trams", {"URL": "host=db"})
    check_options("postgres", "trams", {"url": "host=db", "keys": "a", "create": "false", "maxRowsPerTrigger": "5"})
    check_options("table", "trams", {"compression": "zstd", "parquet.bloom.filter.enabled#train": "true"})
