"""The upload contract, as the job checks it.

uploaded_file   the check of a file: records, or the reason why there are none
fields, values  fields and value columns, with their ranges
declared        schemas that manifests name, and the fit of records
"""
