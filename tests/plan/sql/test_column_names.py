"""The table of names is what Spark says."""

from __future__ import annotations

from importlib import reload
from pathlib import Path
from typing import Any

import pytest

from rove.plan.sql import name_table
from tests.plan.sql.spark_column_names import signatures, table

FILE = Path(name_table.__file__)
_HEAD = '''"""What Spark calls the results of functions. A test writes this file: `test_column_names.py`."""

NAMES = """\\
'''


@pytest.mark.slow
def test_the_table_of_names_is_what_spark_says(spark: Any, pytestconfig: pytest.Config) -> None:
    """It is asked for every function with --all-functions, else for some."""
    rewrites = pytestconfig.getoption("--rewrite-docs")
    asked = sorted(signatures())
    asked = asked if rewrites or pytestconfig.getoption("--all-functions") else asked[::15]
    lines = table(spark, asked)
    if rewrites:
        FILE.write_text(_HEAD + "\n".join(lines) + '"""\n')
        reload(name_table)
    calls = {f"{name}/{count}" for name, count in asked}
    assert [line for line in name_table.NAMES.splitlines() if line.partition(" ")[0] in calls] == lines
