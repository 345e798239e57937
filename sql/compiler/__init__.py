"""From a plan to Python: each operator writes its part of one function.

`statement` compiles EPL statements and stream queries; `rowwise_text` rules without a window.
`acting` is what triggers do, `answer` what subqueries give,
`recognize_text` what match_recognize does with a row, `route` the way of an event to a context's partitions.
The text is an artefact: nothing reads it back.
"""
