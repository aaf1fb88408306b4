"""What tests of pages in a browser share: where one goes, what one waits for, what stands there."""

from urllib.parse import quote

ROWS = ".listing tbody tr"


def address(*codes, by=None, within=None):
    """The address of a place: for each axis a code, empty for everything."""
    written = ["-".join(quote(code, safe="!'()*~").replace("-", "%2D") for code in one)
               for one in (codes, within or ())]  # fmt: skip
    parts = [f"place={written[0]}", *([f"in={written[1]}"] if within else [])]
    return "#" + "&".join([*parts, *([f"by={'-'.join(map(str, by))}"] if by else [])])


def title(tab):
    """What the answer is about."""
    return tab.inner_text("#answer h2")


def ready(tab, words=""):
    """Wait until the answer of a place is there whose name begins so."""
    tab.wait_for_function(
        "(words) => document.querySelector('#explorer[data-ready]')"
        " && document.querySelector('#answer h2').innerText.startsWith(words)",
        arg=words,
    )
    return tab


def figure_of(tab):
    """The count of the answer."""
    return tab.inner_text("#answer .figure strong")


def choose(tab, levels):
    """Choose what counts are split into, and wait until that is drawn."""
    value = "-".join(map(str, levels))
    select = tab.locator("select[data-axis='cuboid']")
    if select.count():
        select.select_option(value)
    elif tab.locator(f"button[data-axis='{value}'][aria-pressed='false']").count():
        tab.locator(f"button[data-axis='{value}']").click()
    tab.wait_for_selector(f".listing[data-of='{value}']")


def offered(tab):
    """What counts can be split into."""
    several = tab.locator("select[data-axis='cuboid'] option")
    if several.count():
        return several.all_inner_texts()
    return tab.locator("[aria-label='Levels to show'] button").all_inner_texts()


def as_matrix(tab):
    """Show both axes at once."""
    tab.get_by_role("button", name="matrix", exact=True).click()
    tab.wait_for_selector("#explorer .matrix")
    return tab
