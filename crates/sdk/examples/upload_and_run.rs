//! Sends a table to running services, and downloads a synthetic one.
//!
//! ```sh
//! fhaim up --email holder@fhaim.local &       # prints where the password is
//! FHAIM_PASSWORD=... cargo run -p fhaim-sdk --example upload_and_run -- \
//!     http://127.0.0.1:8080 holder@fhaim.local people.schema.json people.csv synthetic.csv
//! ```

use fhaim_api::Digest;
use fhaim_api::account::{Credentials, Secret};
use fhaim_api::job::Draw;
use fhaim_domain::{ReadOptions, Schema, read_csv};
use fhaim_protocol::terms::Terms;
use fhaim_sdk::{Client, Endpoints, Journal, NoiseSource, Records, UploadSource};
use std::path::Path;
use std::sync::Arc;
use std::{env, error, fs};
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<(), Box<dyn error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [server, email, schema, data, out] = arguments.as_slice() else {
        return Err("arguments: SERVER EMAIL SCHEMA DATA OUT".into());
    };
    let client = Client::new(Endpoints::behind(server))?;
    let password = Secret(env::var("FHAIM_PASSWORD")?);
    let email = email.clone();
    client.sign_in(&Credentials { email, password }).await?;

    // The table stays on this machine. Its schema is public, and must come from public knowledge.
    let schema = Schema::from_json(schema, &fs::read(schema)?)?;
    let file = fs::read(data)?;
    let table = read_csv(schema.clone(), file.as_slice(), &ReadOptions::new(data))?.table;

    // Terms cannot change later: the whole budget, and a bound on the records.
    let terms = Terms::new(schema, 1.0, 1e-9, 2 * table.records() as u64);
    let id = Uuid::now_v7();
    let dataset = client.create_dataset(id, "example", terms).await?;
    let journal = Path::new(out).with_extension("upload");
    let journal = Journal::open(&journal, dataset.id, Digest::of(&file))?;
    let source = UploadSource {
        records: Records::Table(Arc::new(table)),
        noise: NoiseSource::System,
        signer: None,
    };
    let tell = |state: fhaim_sdk::UploadProgress| eprintln!("{} of {}", state.done, state.objects);
    client.upload(&dataset, &source, journal, &tell).await?;

    // The job runs without this program, which only watches it.
    let job = client.run(dataset.id, Uuid::now_v7()).await?;
    let mut events = client.events(job.id, 0).await?;
    while let Some(event) = events.next().await? {
        eprintln!("{:?}", event.what);
    }
    let mut table = tokio::fs::File::create(out).await?;
    let draw = Draw::default();
    let bytes = client.download(job.id, &draw, &mut table).await?;
    println!("{bytes} bytes in {out}");
    Ok(())
}
