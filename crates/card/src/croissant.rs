//! The card as Croissant 1.1 metadata: JSON-LD with schema.org's Dataset (docs/reference/card.md lists our own keys).

use fhaim_domain::Output;
use fhaim_protocol::roster::{ContributionKind, Partition};
use serde_json::{Map, Value, json};

use crate::{
    Card, CardColumn, CardSetting, CardTable, CardValues, Error, SpendingSource, numbers::hex,
};

/// Prefix of the keys that neither schema.org nor Croissant has.
const NAMESPACE: &str = "https://github.com/fhaim/fhaim/blob/main/docs/reference/card.md#";

/// Terms of the Croissant format, with their places in its vocabulary.
const CROISSANT_TERMS: [&str; 27] = [
    "arrayShape",
    "citeAs",
    "column",
    "containedIn",
    "equivalentProperty",
    "extract",
    "field",
    "fileObject",
    "fileProperty",
    "fileSet",
    "format",
    "includes",
    "isArray",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "samplingRate",
    "separator",
    "source",
];

impl Card {
    /// Returns the card as Croissant metadata, in indented JSON.
    ///
    /// # Errors
    /// [`Error::Json`] if the metadata cannot be converted.
    pub fn json(&self) -> Result<String, Error> {
        let mut text = serde_json::to_string_pretty(&self.metadata())?;
        text.push('\n');
        Ok(text)
    }

    fn metadata(&self) -> Value {
        let schema = &self.facts.terms.schema;
        let mut metadata = Map::new();
        let mut add = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
        add("@context", context());
        add("@type", json!("sc:Dataset"));
        add("conformsTo", json!("http://mlcommons.org/croissant/1.1"));
        add("name", json!(schema.name()));
        add("description", json!(self.description()));
        add("datePublished", json!(self.facts.date()));
        let written = self.columns.iter().filter(|column| column.is_written());
        add("variableMeasured", written.map(variable).collect());
        if let Some(table) = &self.facts.table {
            add("distribution", json!([file_object(table)]));
            add("recordSet", json!([self.record_set()]));
        }
        add("rai:dataUseCases", json!(self.exactness()));
        add(
            "rai:dataLimitations",
            json!([self.conclusions(), self.limits()].concat()),
        );
        add(
            "rai:personalSensitiveInformation",
            json!([self.protected(), self.guarantee().to_vec()].concat()),
        );
        add("fhaim:privacy", self.privacy());
        add("fhaim:schema", self.schema_facts());
        add("fhaim:parties", self.parties());
        add("fhaim:program", json!(self.facts.program));
        if let Some(digest) = &self.facts.model_sha256 {
            add("fhaim:modelSha256", json!(hex(digest)));
        }
        Value::Object(metadata)
    }

    fn description(&self) -> String {
        let terms = &self.facts.terms;
        format!(
            "Synthetic table \"{}\", made with differential privacy (epsilon {}, delta {:e}). {}",
            terms.schema.name(),
            terms.epsilon,
            terms.delta,
            self.guarantee().join(" ")
        )
    }

    fn record_set(&self) -> Value {
        let written = self.columns.iter().filter(|column| column.is_written());
        let is_csv = self
            .facts
            .table
            .as_ref()
            .is_none_or(|table| table.delimiter.is_some());
        let data_type = |column: &CardColumn| match column.output {
            Some(output) if column.is_plain_text || !is_csv => data_type(output),
            _ => "sc:Text",
        };
        let fields = written.enumerate().map(|(index, column)| {
            json!({
                "@type": "cr:Field",
                // An identifier must not have blanks, as names of columns may.
                "@id": format!("records/{}", index + 1),
                "name": column.name,
                "description": column.form,
                "dataType": data_type(column),
                "source": {
                    "fileObject": {"@id": "table"},
                    "extract": {"column": column.name},
                },
            })
        });
        json!({
            "@type": "cr:RecordSet",
            "@id": "records",
            "name": "records",
            "description": "Synthetic records. None is a real record.",
            "field": fields.collect::<Vec<Value>>(),
        })
    }

    fn privacy(&self) -> Value {
        let terms = &self.facts.terms;
        let mut privacy = json!({
            "fhaim:epsilon": terms.epsilon,
            "fhaim:delta": terms.delta,
            "fhaim:unit": "one record added or removed",
            "fhaim:mechanism": terms.mechanism,
            "fhaim:runs": terms.runs,
        });
        if let Some(bound) = terms.record_bound {
            privacy["fhaim:recordBound"] = json!(bound);
        }
        if let Some(total) = self.facts.noise.as_ref().and_then(|noise| noise.total) {
            privacy["fhaim:noiseOfNumberOfRecords"] = json!(total);
        }
        if let Some(spending) = &self.facts.spending {
            privacy["fhaim:spentOnTheseRecords"] = json!({
                // JSON has no infinity: null stands for spending without a bound.
                "fhaim:epsilon": spending.epsilon,
                "fhaim:delta": spending.delta,
                "fhaim:uses": spending.uses,
                "fhaim:usesNotIncluded": spending.uncounted,
                "fhaim:accordingTo": match spending.source {
                    SpendingSource::Holder => "holder",
                    SpendingSource::Ledger => "ledger",
                },
            });
        }
        privacy
    }

    fn schema_facts(&self) -> Value {
        let schema = &self.facts.terms.schema;
        let left_out = self.columns.iter().filter(|column| !column.is_written());
        let left_out =
            left_out.map(|column| json!({"sc:name": column.name, "sc:description": column.form}));
        let rules = schema.rules().into_iter().map(|rule| json!(rule.text));
        let mut facts = json!({
            "fhaim:sha256": hex(&schema.digest()),
            "fhaim:origin": match schema.claim() {
                Some(_) => "private draft",
                None => "public knowledge, according to the holder",
            },
            "fhaim:leftOut": left_out.collect::<Vec<Value>>(),
            "fhaim:rules": rules.collect::<Vec<Value>>(),
        });
        if let Some(claim) = schema.claim() {
            facts["fhaim:epsilon"] = json!(claim.epsilon);
            facts["fhaim:delta"] = json!(claim.delta);
        }
        facts
    }

    fn parties(&self) -> Value {
        let terms = &self.facts.terms;
        let mut parties = json!({
            "fhaim:setting": match self.facts.setting {
                CardSetting::InTheClear => "in the clear, on the holder's machine",
                CardSetting::OneProgram => "under encryption, on the holder's machine",
                CardSetting::Services | CardSetting::UnstatedServices => "under encryption, by services",
            },
            "fhaim:trust": self.trust(),
        });
        if self.facts.setting == CardSetting::Services {
            parties["fhaim:computationServices"] = json!(1 + u8::from(terms.witness));
            parties["fhaim:keyServices"] = json!(terms.key_services.len().max(1));
        }
        if let Some(holders) = &terms.holders {
            parties["fhaim:holders"] = json!(holders.count);
            parties["fhaim:honestHolders"] = json!(holders.honest);
            parties["fhaim:holdersHave"] = json!(match holders.partition {
                Partition::Records => "records",
                Partition::Columns => "columns",
            });
            parties["fhaim:holdersUpload"] = json!(match holders.contribution {
                ContributionKind::Records => "records",
                ContributionKind::Counts => "counts",
            });
        }
        parties
    }
}

fn context() -> Value {
    let mut context = json!({
        "@language": "en",
        "@vocab": "https://schema.org/",
        "conformsTo": "dct:conformsTo",
        "cr": "http://mlcommons.org/croissant/",
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "dct": "http://purl.org/dc/terms/",
        "description": {"@container": "@language"},
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "fhaim": NAMESPACE,
        "name": {"@container": "@language"},
        "rai": "http://mlcommons.org/croissant/RAI/",
        "sc": "https://schema.org/",
        "subField": "cr:subField",
        "transform": "cr:transform",
    });
    for term in CROISSANT_TERMS {
        context[term] = json!(format!("cr:{term}"));
    }
    context
}

fn file_object(table: &CardTable) -> Value {
    let mut file = json!({
        "@type": "cr:FileObject",
        "@id": "table",
        "name": table.name,
        "contentUrl": table.name,
        "contentSize": format!("{} B", table.bytes),
        "encodingFormat": match table.delimiter {
            Some('\t') => "text/tsv",
            Some(_) => "text/csv",
            None => "application/x-parquet",
        },
        "sha256": hex(&table.sha256),
    });
    if let Some(delimiter) = table.delimiter {
        file["fhaim:delimiter"] = json!(delimiter);
    }
    if let Some(records) = table.records {
        file["fhaim:records"] = json!(records);
    }
    file
}

/// Returns a column as a variable of schema.org.
fn variable(column: &CardColumn) -> Value {
    let mut variable = json!({
        "@type": "PropertyValue",
        "name": column.name,
        "description": column.form,
        "fhaim:kind": column.kind.word(),
        "fhaim:precision": column.precision,
        "fhaim:nullable": column.missing.is_some(),
    });
    match &column.values {
        CardValues::List(values) => variable["fhaim:values"] = json!(values),
        CardValues::Range {
            first,
            last,
            special,
        } => {
            variable["minValue"] = json!(first);
            variable["maxValue"] = json!(last);
            variable["fhaim:specialValues"] = json!(special);
        }
        CardValues::Open => {}
    }
    if let Some(unit) = &column.unit {
        variable["unitText"] = json!(unit);
    }
    if let Some(text) = column.missing.as_ref().filter(|text| !text.is_empty()) {
        variable["fhaim:missingText"] = json!(text);
    }
    if let Some(noise) = column.noise {
        variable["fhaim:noise"] = json!(noise);
    }
    variable
}

/// Returns the Croissant type of values. It has none for durations.
fn data_type(output: Output) -> &'static str {
    match output {
        Output::Text | Output::Category | Output::Duration(_) => "sc:Text",
        Output::Flag => "sc:Boolean",
        Output::Integer => "sc:Integer",
        Output::Decimal(_) | Output::Number => "sc:Float",
        Output::Date => "sc:Date",
        Output::TimeOfDay(_) => "sc:Time",
        Output::Timestamp { .. } => "sc:DateTime",
    }
}
