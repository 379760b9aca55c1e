//! DescribeCluster: the one broker.

use highwater_protocol::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse, ErrorCode,
};

use crate::node::Node;

/// The kinds of endpoints: we are a broker.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(crate) fn answer(node: &Node, request: DescribeClusterRequest) -> DescribeClusterResponse {
    if request.endpoint_type != BROKERS {
        return DescribeClusterResponse {
            error_code: match request.endpoint_type {
                CONTROLLERS => ErrorCode::MISMATCHED_ENDPOINT_TYPE,
                _ => ErrorCode::UNSUPPORTED_ENDPOINT_TYPE,
            },
            error_message: Some("this is a broker, not a controller".to_owned()),
            ..Default::default()
        };
    }
    DescribeClusterResponse {
        cluster_id: node.log.cluster_id().to_owned(),
        controller_id: node.config.node_id,
        brokers: vec![DescribeClusterBroker {
            broker_id: node.config.node_id,
            host: node.advertised.host.clone(),
            port: node.advertised.port.into(),
            rack: None,
        }],
        ..Default::default()
    }
}
