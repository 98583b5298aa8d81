"use strict";
(function () {
  const source = document.getElementById("figure");
  const place = document.getElementById("timeline");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // Colours are names of CSS variables in the figure, so that one figure serves light and dark.
  function coloured(value, style) {
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
    }
    return typeof value === "string" && value.startsWith("--") ? style.getPropertyValue(value).trim() : value;
  }

  function draw() {
    const figure = coloured(JSON.parse(source.textContent), getComputedStyle(document.documentElement));
    if (window.innerWidth < 620) figure.layout.margin.l = 52;
    Plotly.react(place, figure.data, figure.layout, { responsive: true, displaylogo: false, displayModeBar: false });
  }

  if (source !== null && place !== null) {
    try {
      draw();
      dark.addEventListener("change", draw);
    } catch (error) {
      place.textContent = "The chart could not be drawn: " + error;
    }
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(button.dataset.copy).then(function () { button.textContent = "Copied"; });
    });
  }
})();
