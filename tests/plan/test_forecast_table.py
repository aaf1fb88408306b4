"""A forecast in words."""

import hedgerow as hr
from hedgerow.plan.forecast import HEADINGS, forecast, forecast_legend, forecast_rows
from tests.made import fixed_axis, plain_plan


def geography(*sizes):
    return hr.Tree([fixed_axis("geo", *sizes)])


def test_rows_are_words_under_headings():
    rows = forecast_rows(
        forecast(plain_plan(geography(3, 1, 4), budget=hr.Rho("1/2"), neighbours=hr.Replace()))
    )
    assert {len(row) for row in rows} == {len(HEADINGS)}
    assert rows[0] == ("0", "total", "1", "0", "0", "±0", "", "public", "0", "0.0%")
    assert (*rows[1][:3], *rows[1][6:9]) == ("1", "level1", "3", "50.0%", "σ² 4", "2")
    assert rows[2][6:9] == ("", "unmeasured", "")
    plan = plain_plan(geography(3), budget=hr.Epsilon(1), mechanism=hr.DiscreteLaplace)
    assert forecast_rows(forecast(plan))[0][7] == "scale 2"


def test_the_legend_explains_the_columns_that_say_something():
    ranges = hr.Ranges.equal_width("x", 0, 1, 60)
    for measure, explained in ((hr.All(), True), (hr.RunningSums(), False)):
        plan = hr.plan_distribution(ranges, budget=hr.Rho("1/2"), measure=measure)
        assert ("empty seen > 0:" in forecast_legend(plan, forecast(plan))) == explained
        assert "95 % max:" in forecast_legend(plan, forecast(plan))
