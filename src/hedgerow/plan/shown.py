"""What a notebook shows of a plan: its table, its picture, and its promise in full."""

from typing import Protocol

from hedgerow.notebook import block, heading, html_picture, html_table, paragraph, text_table
from hedgerow.plan.forecast import HEADINGS, forecast, forecast_matrix, forecast_rows
from hedgerow.plan.picture import Described, counts_of, svg_of_forecast, title_of
from hedgerow.privacy.promise import Promise


class Promised(Described, Protocol):
    """What is read of a `hedgerow.plan.plan.Plan`."""

    @property
    def promise(self) -> Promise:
        """The privacy promise in full."""

    @property
    def public_facts(self) -> str:
        """What public files say, in lines."""


def plan_html(plan: Promised) -> str:
    """Return a plan as HTML: what is measured, the error to expect, the promise, the hash."""
    frame = forecast(plan)
    first = int(frame["depth"].null_count() > 0)  # only a chain has depths
    rows = [row[first:] for row in forecast_rows(frame)]
    table = html_table(HEADINGS[first:], rows, left={1 - first})
    described = f"Expected error of the {counts_of(plan)} of each cuboid, as in the table."
    return block(
        heading(
            title_of(plan, "A plan"), f"Expected errors of {counts_of(plan)}. Plan {plan.hash}"
        ),
        table,
        text_table(forecast_matrix(plan, frame)),
        html_picture(svg_of_forecast(plan, frame), described),
        promise_html(plan),
    )


def promise_html(plan: Promised) -> str:
    """Return the promise with its neighbours and restrictions, and what public files say."""
    return paragraph(str(plan.promise)) + text_table(plan.public_facts)
