"""What a commit to a Delta table is made of besides its checkpoint: files, words about it, and new columns
before it. Used by `table`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from deltalake import DeltaTable, Field
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from icestream.api.errors import CommitConflict, FatalError, SinkUnavailable
from icestream.api.sink import Commit
from icestream.connectors.delta.commits.marks import CHANGES
from icestream.connectors.delta.files.partitions import text_problem
from icestream.connectors.delta.files.stage import StagedFile, TablePlan
from icestream.connectors.delta.new_table import WITHOUT_HOOKS
from icestream.connectors.delta.schemas import changed_columns, relaxed_columns
from icestream.connectors.delta.storage import told
from icestream.waits import waiting_for


def add_action(file: StagedFile, plan: TablePlan) -> AddAction:
    """A staged file as the log has it. A partition value that does not parse would make a table that nobody
    can open again, so each is looked at once more."""
    for column, text in file.partition:
        if (why := text_problem(text, plan.arrow_schema.field(column).type)) is not None:
            raise FatalError(
                f"{plan.name} is not committed to: '{text}' cannot be a value of partition column "
                f"'{column}', because {why}; this is an error of icestream, please report it"
            )
    now = time.time_ns() // 1_000_000
    return AddAction(file.path, file.size, dict(file.partition), now, True, file.statistics)


def words_about(commit: Commit) -> dict[str, str]:
    """What else a commit says, for people who read the history of the table."""
    said = {"icestream.commit": commit.checkpoint.commit}
    if isinstance(commit.plan, TablePlan) and commit.plan.upserts is not None:
        said[CHANGES] = "true"
    if commit.valid_through is not None:
        said["icestream.valid-through"] = commit.valid_through.isoformat().replace("+00:00", "Z")
    return said


def add_new_columns(table: DeltaTable, plan: TablePlan, opened_anew: Callable[[], DeltaTable]) -> None:
    """Give a table the columns that the plan has and it lacks; and require no more what it need not."""
    before = table.schema().to_json()
    try:
        with waiting_for(f"storage: new columns of {plan.name}"):
            if columns := changed_columns(before, plan.schema_json):
                table.alter.add_columns(
                    [Field.from_json(json.dumps(column)) for column in columns],
                    post_commithook_properties=WITHOUT_HOOKS,
                )
            for column in relaxed_columns(before, plan.schema_json):
                opened_anew().alter.drop_column_not_null(column, post_commithook_properties=WITHOUT_HOOKS)
    except CommitFailedError as error:
        raise CommitConflict(f"{plan.name}: {told(error)}") from error
    except DeltaError as error:
        wanted = ", ".join(".".join(path) for path in plan.new_fields)
        raise FatalError(
            f"{plan.name} cannot get the columns {wanted}: {told(error)}; add them by hand, or set "
            "delta.tables.evolve-schema-enabled=false"
        ) from error
    except OSError as error:
        raise SinkUnavailable(f"{plan.name}: new columns: {told(error)}") from error
