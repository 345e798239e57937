"""From a plan to Python: each operator writes its part of one function.

`statement` compiles EPL statements and stream queries; `rowwise_text` rules without a window.
`acting` is what triggers do, `answer` what subqueries give, `patterns` what those of FROM evaluate.
The text is an artefact: nothing reads it back.
"""
