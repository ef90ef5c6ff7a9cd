"""`rove compact`: puts the small files of a table together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rove.model.errors import SetupError
from rove.model.ids import checked_name

_HINDERED = {
    "at work": "another compaction of this table is at work; nothing was changed",
    "overtaken": "its query wrote its list of files faster than this could replace it; nothing was changed. Try again "
    "when fewer rows come",
}


def compact(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The name of the table.")],
    tables: Annotated[Path, typer.Option(metavar="DIR", help="The folder for tables of `rove cloud`.")] = Path(
        "rove-tables"
    ),
    ended: Annotated[
        bool, typer.Option("--ended", help="No query writes the table any more: delete old files at once.")
    ] = False,
) -> None:
    """Put the small files of a table together. Its query may go on, and readers that are open as well.

    Old files are deleted ten minutes later, by the next compaction after the query has gone on. `rove cloud` compacts
    tables by itself while no rows come (compact_files in its settings).
    """
    from rove.cloud.compaction import GRACE_S, compact, spark_rewrite
    from rove.cloud.start.session import spark_session
    from rove.cloud.tables import METADATA, parts_of

    folder = tables / checked_name(table, "a table")
    parts = [part for part in parts_of(folder) if (part / METADATA).is_dir()]
    if not parts:
        raise SetupError(f"there is no table `{table}` in {tables}; give the folder of `rove cloud`: --tables DIR")
    spark = spark_session("local[*]", name="rove compact")
    try:
        for part in parts:
            done = compact(part, spark_rewrite(spark), files_min=2, ended=ended)
            if ended:  # the files that this compaction replaced
                deleted = compact(part, spark_rewrite(spark), files_min=2, grace_s=0, ended=True).deleted
            else:
                deleted = done.deleted
            if done.hindered:
                typer.echo(f"{part}: {_HINDERED[done.hindered]}")
                continue
            if not done.before and not deleted:
                typer.echo(f"{part}: nothing to put together yet; files are taken ten micro-batches at a time")
                continue
            kept = "" if ended or not done.before else f"; old files stay for {GRACE_S / 60:.0f} minutes"
            typer.echo(f"{part}: {done.before} files became {done.after}, {deleted} old files deleted{kept}")
    finally:
        spark.stop()
