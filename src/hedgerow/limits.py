"""How large everything may be, and why: the sizes at which Hedgerow refuses, or takes another way.

Here are the limits of numbers, trees, workloads, releases, pages and files; what a search tries at
most, how digits bound a computation, and how many rows a picture shows stand with their proofs
beside the code. Every limit is of public facts, of a file, or of the numbers of a type: counts of a
confidential table beyond one (`LARGEST_LEAF`), and noisy counts (`LARGEST_COUNT`,
`LARGEST_REAL_COUNT`), are cut to it and never refused. What a release takes is computed for its own
plan and compared with the memory there is (`hedgerow.release.preflight`); these are the bounds
beyond which nobody has tried, or nothing can work.
"""

# --- numbers ------------------------------------------------------------------------------------

LARGEST_DOUBLE = 1 << 53
"""Whole numbers up to here are exact as doubles, in a browser, too."""

LARGEST_COUNT = 1 << 61
"""Noisy counts lie in ±2^61, totals in 0..2^61 (records): a count less any level fits int64."""

LARGEST_REAL_COUNT = 1 << 40
"""Real counts and their totals (records) stay where doubles resolve a 4096th of a record.

Values beyond it count as it. They are noisy counts, and what is made of such costs nothing, while
a refusal before the noise is drawn would tell how large the table is.
"""

LARGEST_LEAF = 1 << 40
"""Records of one leaf that are counted at most; more are left out.

Whether a table has more is confidential, so it is no reason to refuse it. One unit changes
``min(count, 2^40)`` of a leaf by at most what it changes the count, and in the same direction, so
every sensitivity holds for what is left (`docs/privacy.md`). A public total must be below it: then
no leaf can reach it.
"""

# --- trees --------------------------------------------------------------------------------------

MOST_LEVELS_OF_AN_AXIS = 64
"""A class of sizes a level is made, and a file is called by its levels."""

MOST_NODES_OF_A_LEVEL = (1 << 31) - 1
"""They are numbered in 32 bits."""

MOST_LEAVES_OF_A_PRODUCT = 1 << 21
"""Of a product axis: the largest table of the 2020 census has 1,227,744 cells a block."""

LARGEST_FAMILY = 1 << 29
"""Cells in one family that the two-word sums of `hedgerow.estimate.families` can hold."""

MOST_LEAVES_FORECAST = (1 << 127) - 1
"""A frame holds no larger count; for a wider tree the noise is forecast, and no error."""

MOST_SHAPES = 1 << 24
"""Distinct subtrees of one depth: each takes some ten numbers of eight bytes."""

MOST_FAMILIES = 1 << 21
"""Families of a tree whose plan is judged: the bound takes some ten seconds."""

MOST_SPACES = 1 << 10
"""Combinations of levels beside one axis of a plan that is judged: a walk of the tree each."""

MOST_AXES_OF_A_RELEASE = 64
"""NumPy's arrays have no more dimensions; nobody reads a directory that says so."""

MOST_AXES_OF_SHAPES = 64
"""NumPy's limit: subtrees are numbered by an array with one dimension an axis."""

MOST_AXES_OF_CLASSES = 63
"""NumPy's limit: arrays have one dimension an axis, and one of depths."""

MOST_AXES_OF_TABLES = 62
"""Axes of named cuboids: NumPy's arrays have 64 at most, and vectors of tables one more."""

MOST_CLASSES = 5_000_000
"""Tuples of classes of nodes, over all depths, between which a fair division is sought."""

MOST_KINDS = 1 << 16
"""Different cells of a cuboid up to which a bound on their ratio is looked for."""

# --- workloads ----------------------------------------------------------------------------------

MOST_CUBOIDS = 4096
"""Of a cube: each is a file, and a use in the accountant's composition. Also of those off a chain
whose errors a plan lists."""

MOST_CELLS_MEASURED = 1 << 32
"""Cells that `All` measures: a noisy count takes eight bytes in memory and on disk."""

MOST_WHOLE = 1 << 26
"""Cells of a cuboid that are measured whole where `Survivors` are: of a cube, and of a chain below
levels that do not matter."""

MOST_NUMBERED = 1 << 62
"""Cells that a cuboid may have: int64 numbers them."""

MOST_ROWS_OF_A_BLOCK = 1 << 31
"""Folded rows, and columns, among which survivors are found; they are int32."""

MOST_PRODUCTS = 4096
"""Combinations of levels up to which shares may be a product over the axes."""

MOST_CELLS_OF_TABLES = 1 << 27
"""Cells of all measured cuboids together up to which their least squares are solved."""

MOST_CUBOIDS_SETTLED = 512
"""Of a closure of cuboids: each is a table that is estimated and settled."""

MOST_ELEMENTS = 1 << 13
"""Elements that a lattice may have; a whole cube has as many as cuboids."""

MOST_SEARCHED = 1 << 8
"""Elements of a table up to which maxima that no block needs are left out."""

MOST_RESIDUALS = 1 << 12
"""Combinations of levels, or of attributes, that have an elimination each."""

MOST_SPREAD = 1 << 9
"""Over so many cuboids a bound of variances is spread; beyond, over those that are measured."""

MOST_DENSE = 1 << 12
"""Rows beside the chains up to which they are solved by a dense factor: 128 megabytes."""

MOST_EXACT = 1 << 28
"""Rows times cells of all tables up to which variances are exact: some seconds."""

MOST_KEPT = 1 << 27
"""Numbers that are kept for exact variances, rows times cells of some cuboids: a gigabyte."""

MOST_CACHED = 1 << 20
"""Cells of a cuboid up to which their variances are kept."""

MOST_VARIANCES = 1 << 24
"""Cells of a cuboid whose variances are looked at one by one."""

MOST_PAIRS = 1 << 22
"""Combinations of the axes' distinct nodes up to which the largest variance is looked for."""

# --- along a spine ------------------------------------------------------------------------------

MOST_ATTRIBUTES = 8
"""Attributes beside the groups: there are two to this power residuals."""

MOST_ATTRIBUTE_CELLS = 1 << 24
"""Combinations of the attributes' leaves that rules may speak of."""

MOST_PUBLIC_PLACES = 1 << 28
"""Nodes of the spine × groups that public tables may tell apart."""

MOST_ROWS_OF_A_SPINE = 1 << 28
"""Rows of a level, and numbers of one kind of matrices: two gigabytes."""

MOST_ABOVE_THE_CUT = 1 << 26
"""Cells above the cut: they are held in memory, in half a dozen tables."""

# --- distributions ------------------------------------------------------------------------------

MOST_BINS = 1 << 20
"""A release holds the edges and codes of all bins in memory, on every machine that reads it."""

MOST_BINS_OF_A_TREE = 1 << 30
"""Bins for which a branching is looked for."""

MOST_SUMMED_BINS = 1 << 16
"""Sums and decoding take K² steps: a second at this many bins."""

MOST_SUMMED_CELLS = 1 << 26
"""Bins of all rows of running sums: they are held at once, in 4 gigabytes."""

MOST_WORK_OF_ROWS = 1 << 35
"""K² steps for each row: some ten seconds."""

# --- what a release is asked --------------------------------------------------------------------

MOST_NOISY_READ = 1 << 29
"""Noisy counts that are read at once: four gigabytes."""

MOST_NOISY_OF_SUMS = 1 << 25
"""Noisy counts that least squares of a chain's sums hold at once: four gigabytes."""

MOST_ROWS_LISTED = 1 << 27
"""Rows of a table in memory; larger cuboids are read from the files in parts."""

MOST_SUMS = 1 << 22
"""Sums of counts: areas times the combinations beside them."""

MOST_CUTS = 1 << 25
"""Places times bins whose counts, and their variances, are held at once: a gigabyte."""

MOST_CELLS_SUMMED = 1 << 27
"""Cells that are summed: they stand in a table of a gigabyte."""

MOST_WORK_OF_SUMS = 1 << 33
"""Sums times what each runs through: the axes' nodes, or all cells where it iterates."""

MOST_CELLS_GIVEN = 1 << 28
"""Noisy counts of another program that are estimated from: two gigabytes, all at once."""

# --- simulations --------------------------------------------------------------------------------

MOST_SUMS_OF_RUNS = 1 << 28
"""Sums that one depth keeps (2 GiB)."""

MOST_CELLS_OF_RUNS = MOST_SUMS_OF_RUNS // 4
"""Possible cells of a depth up to which all of them can have sums: four groups of runs, at least,
have theirs apart."""

MOST_DRAWN = 1 << 31
"""Noisy counts of named cuboids that are drawn: minutes of work."""

MOST_BOOTSTRAPPED = 1 << 27
"""Numbers that bootstrapped amounts take: a gigabyte."""

# --- pages --------------------------------------------------------------------------------------

MOST_NODES_OF_A_PAGE = 1_500_000
"""Listed counts that are read for a page."""

MOST_NOISY_OF_A_PAGE = 1 << 22
"""Noisy counts that are estimated from once more for the medians of a page."""

MOST_CHARACTERS = 4_600_000
"""Of a page's counts and codes, so that the whole page is below 5 MB."""

MOST_BYTES_OF_A_BLOCK = 1 << 28
"""Of a page's block of data: a damaged page must not fill the memory."""

MOST_ROWS_OF_A_PAGE = 5_000_000
"""Rows that are read of a cuboid; of larger ones the page says how many they are, no more."""

MOST_PAIRS_OF_A_MOVE = 150_000
"""Pairs of distinct subtrees, parent and child, that a browser goes over at each move."""

MOST_AREAS_SHOWN = 20_000
"""Areas of a map: a browser draws them all."""

MOST_POINTS_SHOWN = 160_000
"""Of all borders after they were simplified, so that a map of 10,000 areas is below 3 MB."""

MOST_BYTES_SHOWN = 1 << 24
"""Of the file of a release that has the borders."""

MOST_ROWS_OF_A_MAP = 1 << 22
"""Of a map that is exported: each row has its shape."""

# --- files: a damaged or hostile one must not fill the memory -----------------------------------

MOST_BYTES_OF_A_FILE = 1 << 21
"""Of a release file, or another in TOML."""

MOST_VALUES_OF_A_FILE = 1 << 17
"""Of a file in TOML: each takes hundreds of bytes once it is parsed."""

MOST_BYTES_OF_A_MANIFEST = 1 << 24
"""Of ``manifest.json``, read before anything is known of a directory."""

MOST_FACTS = 1 << 10
"""Public files of a release directory."""

MOST_PUBLIC_ROWS = 1 << 31
"""Rows of a public file of a release directory."""

MOST_FOOTER = 1 << 26
"""Bytes of the footer of a Parquet file."""

MOST_COLUMNS_OF_A_FILE = 64 * 64
"""Columns of a Parquet file: as many as axes have levels."""

MOST_DICTIONARY = 1 << 24
"""Bytes of a Parquet file's dictionary: our writer's have four megabytes at most."""

MOST_COLUMNS_OF_A_LIST = 200
"""Columns of a public list that are read."""

MOST_ENTRIES = 1 << 17
"""Files and folders that a table's folder, or that of its glob, may hold."""

MOST_PLACES = 10_000
"""Paths that the alternatives of a pattern, ``{a,b}``, may stand for."""

MOST_BYTES_OF_A_MAP = 1 << 30
"""Of a file with shapes."""

MOST_POINTS_GIVEN = 20_000_000
"""Points of all shapes of a file."""

MOST_BYTES_UNPACKED = 32 * MOST_POINTS_GIVEN
"""Bytes of a column or part of a file: so many points with heights and measures."""

MOST_VALUES_OF_A_MAP = 80_000_000
"""Of a JSON file, by the marks that stand for values, which are counted before it is read."""

MOST_CRS = 1 << 16
"""Letters of what a file says of its coordinates."""

# --- proposals of a new file --------------------------------------------------------------------

MOST_CELLS_PROPOSED = 1 << 27
"""Cells of a cube that are held in memory at once where a new file proposes it: 3 GB."""

MOST_FACTOR = 1000
"""Rows that a list has at most to be a factor of a product."""
