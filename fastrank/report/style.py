"""The style sheet and the few lines of script of the page: light, dark, narrow and paper."""

from __future__ import annotations

CSS = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1a1d21; --soft: #59616b; --line: #d9dde3; --grid: #e8ebef;
  --better: #1f5fbf; --worse: #b8480d; --neutral: #626b76; --link: #174ea6; --first: #b3bac4; --second: #1f5fbf; --mark: #1a1d21;
  --c0: #1f5fbf; --c1: #b8480d; --c2: #1b7f5c; --c3: #8e3a9d; --c4: #8a6a00; --c5: #0b7285; --c6: #a61e4d; --c7: #495057;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --card: #1d2126; --ink: #e8eaed; --soft: #a3abb6; --line: #363c44; --grid: #262b31;
    --better: #7fb0ff; --worse: #ff9e64; --neutral: #99a2ad; --link: #9cc0ff; --first: #4d5560; --second: #7fb0ff; --mark: #e8eaed;
    --c0: #7fb0ff; --c1: #ff9e64; --c2: #63d2a8; --c3: #d9a0e6; --c4: #e3c35a; --c5: #66d3e0; --c6: #ff8fb1; --c7: #b5bcc5;
  }
}
* { box-sizing: border-box }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
main, header, footer, nav { max-width: 76rem; margin: 0 auto; padding: 0 1.5rem }
header { padding-top: 2.5rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; text-wrap: balance; overflow-wrap: anywhere }
h2 { font-size: 1.25rem; margin: 3rem 0 .75rem; padding-top: .4rem; letter-spacing: -.005em }
h3 { font-size: 1.02rem; margin: 1.8rem 0 .5rem; overflow-wrap: anywhere }
p { margin: 0 0 .8rem; max-width: 46rem }
a { color: var(--link); text-underline-offset: .15em }
a:focus-visible, summary:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: 3px }
.skip { position: absolute; left: -99rem } .skip:focus { left: 1rem; top: .5rem; background: var(--page); padding: .4rem .8rem; z-index: 9 }
.soft, caption, figcaption { color: var(--soft) }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .35rem 1.3rem; margin: 1.4rem 0 0; padding: .7rem 0;
  border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); font-size: .93rem }
.verdict { border-left: 5px solid var(--neutral); background: var(--card); padding: 1.1rem 1.4rem; margin: 1.6rem 0 1.2rem;
  border-radius: 0 8px 8px 0 }
.verdict.better { border-color: var(--better) } .verdict.worse { border-color: var(--worse) }
.verdict p { font-size: 1.12rem; margin: 0 0 .5rem; max-width: 54rem } .verdict p:last-child { margin: 0 }
.verdict p + p { font-size: 1rem; color: var(--soft) }
.tiles { display: grid; gap: .8rem; margin: 0 0 1rem; padding: 0; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)) }
.tiles div { border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem }
.tiles dt { font-size: .83rem; color: var(--soft) }
.tiles dd { margin: .1rem 0 0; font-size: 1.15rem; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.tiles dd.span { font-size: 1rem; line-height: 1.75 }
.tiles dd small { display: block; font-size: .83rem; font-weight: 400; color: var(--soft) }
.notes { list-style: none; padding: 0; margin: 0 }
.notes li { border-left: 3px solid var(--line); padding: .15rem 0 .15rem .9rem; margin: 0 0 .7rem; max-width: 54rem }
.scroll { overflow-x: auto; margin: 0 0 1.2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .94rem }
caption { text-align: left; padding: 0 0 .5rem; font-size: .9rem }
caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 2rem) }
th, td { padding: .42rem .85rem .42rem 0; border-bottom: 1px solid var(--grid);
  text-align: right; vertical-align: middle; white-space: nowrap }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; font-size: .85rem; color: var(--soft); vertical-align: bottom }
th[scope=row], th.name, td.word { text-align: left } th[scope=row], td.word { font-weight: 500 }
th[scope=row] { white-space: normal; overflow-wrap: break-word; min-width: min(9rem, 22vw); max-width: 20rem }
.pair th[scope=row] { min-width: 4.5rem }
td.plot, th.plot { padding: 0 .9rem 0 0; line-height: 0; text-align: left } th.plot { vertical-align: bottom }
tr.decides th, tr.decides td { background: var(--card); font-weight: 600 }
tr.decides th { padding-left: .6rem } td small { color: var(--soft); font-size: .85em; font-weight: 400 }
.better-word { color: var(--better); font-weight: 600 } .worse-word { color: var(--worse); font-weight: 600 }
figure { margin: 0 0 1.4rem } figcaption { font-size: .9rem; max-width: 46rem; margin: 0 0 .5rem }
.pair table { width: 100% } .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 29rem), 1fr)); gap: 0 2rem }
svg.chart { display: block; max-width: 100%; height: auto; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif }
svg.forest { max-width: none } svg.narrow { display: none }
svg text { fill: var(--soft) }
svg text.strong { fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--page); stroke-width: 4px }
svg text.tick { font-size: 11.5px; font-variant-numeric: tabular-nums }
svg text.better { fill: var(--better) } svg text.worse { fill: var(--worse) }
svg .grid { stroke: var(--grid) } svg .axis { stroke: var(--soft) } svg .zero { stroke: var(--soft); stroke-dasharray: 2 2 }
svg .aim { stroke: var(--soft); stroke-dasharray: 5 4 } svg .mark { stroke: var(--mark); stroke-dasharray: 2 3; opacity: .6 }
svg .dot { fill: var(--mark) }
svg .whisker { stroke: var(--neutral); stroke-width: 2; fill: none } svg .point { fill: var(--neutral) }
svg .whisker.better { stroke: var(--better) } svg .point.better { fill: var(--better) }
svg .whisker.worse { stroke: var(--worse) } svg .point.worse { fill: var(--worse) }
svg rect.better, svg path.better { fill: var(--better) } svg rect.worse, svg path.worse { fill: var(--worse) }
svg path.whisker { fill: none }
svg .first { fill: var(--first) } svg .second { stroke: var(--second); stroke-width: 2.2; fill: none }
svg .curve { fill: none; stroke-width: 2.4 }
svg .c0 { stroke: var(--c0) } svg .c1 { stroke: var(--c1); stroke-dasharray: 9 4 } svg .c2 { stroke: var(--c2); stroke-dasharray: 3 3 }
svg .c3 { stroke: var(--c3); stroke-dasharray: 12 3 3 3 } svg .c4 { stroke: var(--c4); stroke-dasharray: 6 3 } svg .c5 { stroke: var(--c5) }
svg .c6 { stroke: var(--c6); stroke-dasharray: 2 4 } svg .c7 { stroke: var(--c7); stroke-dasharray: 14 4 }
details { border: 1px solid var(--line); border-radius: 8px; margin: 0 0 .8rem; padding: 0 1.1rem }
summary { cursor: pointer; padding: .65rem 0; font-weight: 600; overflow-wrap: anywhere }
details[open] > summary { border-bottom: 1px solid var(--grid); margin-bottom: .8rem }
:target > details, details:target { border-color: var(--link) }
.work { min-width: 0 } .work table { font-size: .88rem } .work .formula { font-size: .88rem; color: var(--soft) }
.work .steps { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .84rem; margin: 0 0 1rem; overflow-wrap: anywhere }
.work tr.total th, .work tr.total td { font-weight: 600; border-top: 1px solid var(--line) }
dl.formulas dt { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .88rem; margin-top: .8rem; overflow-wrap: anywhere }
dl.formulas dd { margin: .15rem 0 0; color: var(--soft); max-width: 54rem }
footer { padding-bottom: 3rem; margin-top: 3rem; font-size: .88rem; color: var(--soft) }
@media (max-width: 46rem) {
  main, header, footer, nav { padding: 0 1rem } header { padding-top: 1.5rem } h1 { font-size: 1.5rem } .less { display: none }
  svg.wide { display: none } svg.narrow { display: block }
}
@media print {
  :root { color-scheme: light; --page: #fff; --card: #f2f2f2; --ink: #000; --soft: #444; --line: #bbb; --grid: #ddd; --better: #1f5fbf;
    --worse: #b8480d; --neutral: #555; --link: #000; --first: #bbb; --second: #1f5fbf; --mark: #000;
    --c0: #1f5fbf; --c1: #b8480d; --c2: #1b7f5c; --c3: #8e3a9d; --c4: #8a6a00; --c5: #0b7285; --c6: #a61e4d; --c7: #495057 }
  @page { margin: 13mm }
  body { font-size: 10pt } h2 { margin-top: 1.6rem } .tiles dd { font-size: 1rem } .tiles dd.span { font-size: .82rem }
  nav, .skip { display: none } main, header, footer { max-width: none; padding: 0 }
  .scroll { overflow: visible } table { font-size: 8.5pt } th, td { padding-right: .6rem } .less { display: revert }
  .pair { grid-template-columns: 1fr 1fr; gap: 0 1.2rem } .pair td, .pair th { padding-right: .4rem } .pair svg.forest { width: 100px }
  details { border-width: 1px 0 0; border-radius: 0; padding: 0 } .work h3 { margin: .4rem 0 }
  .work table { font-size: 6.6pt } .work td, .work th { padding: .12rem .3rem .12rem 0 } .work .steps, .work .formula { font-size: 6.4pt }
  figure, tr, .verdict, .tiles div { break-inside: avoid } summary { break-after: avoid } h2, h3, caption, figcaption { break-after: avoid }
  svg.wide { display: block } svg.narrow { display: none } a { text-decoration: none }
  svg, .verdict, tr.decides th, tr.decides td { print-color-adjust: exact; -webkit-print-color-adjust: exact }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto } }
"""

# A query that is linked to opens; on paper all are open.
SCRIPT = """
const open = () => { const at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (at && at.tagName === 'DETAILS') { at.open = true; at.scrollIntoView() } };
addEventListener('hashchange', open); open();
let closed = [];
addEventListener('beforeprint', () => {
  closed = [...document.querySelectorAll('details:not([open])')]; closed.forEach(d => d.open = true) });
addEventListener('afterprint', () => closed.forEach(d => d.open = false));
"""
