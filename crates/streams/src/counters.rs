//! What the streams count, through the `metrics` facade.

use metrics::{Unit, counter, describe_counter, describe_gauge};

/// Tells the recorder what the numbers mean.
pub fn describe_metrics() {
    describe_gauge!("highwater_stream_sessions", "Connections that are open, by stream");
    describe_counter!("highwater_stream_records_total", "Records sent, by stream");
    describe_counter!(
        "highwater_stream_bytes_total",
        Unit::Bytes,
        "Bytes of messages sent, by stream"
    );
    describe_counter!(
        "highwater_stream_suppressed_total",
        "Repeats that were recognised and not sent, by stream"
    );
    describe_counter!(
        "highwater_stream_closes_total",
        "Connections that ended, by stream and by the code of the reason"
    );
    describe_counter!(
        "highwater_stream_refusals_total",
        "Requests and connections that were refused, by the code of the reason"
    );
    // There from the start, so that the first of them is an increase.
    for code in ["position_gone", "history_changed"] {
        counter!("highwater_stream_refusals_total", "code" => code).absolute(0);
    }
}
