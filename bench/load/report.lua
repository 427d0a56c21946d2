-- Says as JSON what wrk counted. Its latencies are left out: they are not corrected for coordinated omission.
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"bytes":%d,"failed":%d,"statuses":%d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
