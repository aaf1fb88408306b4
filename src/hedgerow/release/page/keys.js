// One stop for the Tab key; arrow keys move within.
function roam(picture, which, isGrid) {
  const stops = [...picture.querySelectorAll(which)];
  if (stops.length) stops[0].tabIndex = 0;
  picture.onkeydown = (event) => {
    const at = stops.indexOf(event.target);
    const next = at < 0 ? null : isGrid ? besides(event) : {
      ArrowRight: stops[at + 1], ArrowDown: stops[at + 1], ArrowLeft: stops[at - 1],
      ArrowUp: stops[at - 1], Home: stops[0], End: stops[stops.length - 1],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
}

// The next cell with a count in the direction of an arrow key.
function besides(event) {
  const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!move) return null;
  let spot = event.target.closest("td");
  while (spot) {
    const row = spot.parentElement;
    const [line, at] = [[...row.parentElement.rows].indexOf(row) + move[0], spot.cellIndex + move[1]];
    const beside = row.parentElement.rows[line];
    spot = line >= 0 && at > 0 && beside ? beside.cells[at] : null;
    const found = spot && spot.querySelector(".cell");
    if (found) return found;
  }
  return null;
}
