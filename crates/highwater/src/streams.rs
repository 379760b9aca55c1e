//! `highwater stream …`

use serde_json::Value;

use crate::api::Api;
use crate::cli::{Cli, Output, StreamCommand};
use crate::failure::Failure;
use crate::{output, tail};

pub(crate) async fn run(cli: &Cli, command: &StreamCommand) -> Result<(), Failure> {
    match command {
        StreamCommand::List => list(&Api::new(&cli.url)?, cli.output).await,
        StreamCommand::Tail { name, begin, count, checkpoint } => {
            tail::run(&cli.url, name, begin, *count, checkpoint.as_deref()).await
        }
    }
}

async fn list(api: &Api, output: Output) -> Result<(), Failure> {
    let answer = api.get("/services/v2/stream").await?;
    let items = answer["response"]["items"].clone();
    if output == Output::Json {
        output::json(&items)?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = items.as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        output::line("no data streams; POST /services/v2/stream/NAME makes one")?;
    } else {
        output::line(&output::columns(&["NAME", "TRAIL", "QUALITY OF SERVICE"], &rows))?;
    }
    Ok(())
}

fn row(item: &Value) -> Vec<String> {
    let details = &item["details"];
    vec![
        output::plain(&item["name"]),
        output::plain(&details["source"]["trail"]),
        output::plain(&details["qualityOfService"]),
    ]
}
