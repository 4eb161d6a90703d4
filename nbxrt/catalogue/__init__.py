"""Descriptions of backends: where they come from, what they say, whether they are right.

`sources` finds files, `reading` turns one into a `document` of data with places (`parsing` does the YAML), `contract`
knows the operations, `schema` writes the JSON Schema (`schema_*` are its parts), `validation` checks a file: its form
(`translation`, `keys`, `wrong_values` put the schema's errors into words) and its `meaning` (`signatures`, `layouts`).
All answer with `diagnostics`. `inheritance` finds what a file extends and `layers` puts the files together. `model`,
`compiling` and `loading` make descriptions of files that are right; `packages` knows what installed packages offer, and
`trust` whether somebody else may change a file.

Nothing is imported here: programs that use a built-in backend need none of it.
"""
