//! The at-least-once writer keeps the contract of writers, on our own broker and on Apache Kafka.

use highwater_kafka::at_least_once;

use crate::contract;
use crate::server::Server;

macro_rules! keeps {
    ($($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                contract::$check(at_least_once, &mut Server::start().await).await;
            }
        )*

        /// One node for all, since each takes seconds to start.
        #[tokio::test(flavor = "multi_thread")]
        async fn all_of_it_on_apache_kafka() {
            let mut server = Server::apache().await;
            $(
                println!("{}", stringify!($check));
                contract::$check(at_least_once, &mut server).await;
                server.clear().await;
            )*
        }
    };
}

keeps! {
    acknowledges_in_order_what_is_there
    offsets_are_stored_and_not_counted
    survives_a_broker_that_comes_and_goes
    survives_a_cut_at_any_byte
    keeps_its_bounds_while_the_broker_stalls
    breaks_when_a_record_is_late
    leaves_no_hole_when_records_are_late
    breaks_when_the_broker_refuses_a_record
    small_records_reach_a_topic_of_small_batches
    breaks_when_its_topic_is_deleted
    refuses_a_record_above_its_own_limit
}
