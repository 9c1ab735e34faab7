//! Plans as bytes: our two operators, what Ballista puts between stages, and nothing else.
//!
//! An executor runs a plan whose root writes a shuffle, and every such node, like each of ours, is
//! decoded here, with its inputs: a plan that has anything else in it is refused, be it a file to scan
//! or an expression to evaluate.

use crate::nodes::{Kind, Node, ORDERS};
use crate::site::Site;
use ballista_core::execution_plans::{
    ShuffleReaderExec, ShuffleWriterExec, SortShuffleWriterExec, UnresolvedShuffleExec,
};
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use std::any::Any;
use std::sync::Arc;

const MULTIPLY: &[u8] = b"fhaim multiply 1";
const PACK: &[u8] = b"fhaim pack 1";

/// Encodes and decodes plans.
#[derive(Debug, Default)]
pub struct Codec {
    ballista: BallistaPhysicalExtensionCodec,
    site: Option<Arc<Site>>,
}

impl Codec {
    /// For an executor, whose operators run.
    pub fn at(site: Arc<Site>) -> Self {
        Self {
            site: Some(site),
            ..Self::default()
        }
    }
}

fn kind_of(plan: &Arc<dyn ExecutionPlan>) -> Option<Kind> {
    plan.downcast_ref::<Node>().map(Node::kind)
}

/// Orders in memory.
fn is_orders(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let source = plan.downcast_ref::<DataSourceExec>();
    plan.schema() == *ORDERS
        && source.is_some_and(|source| {
            let source: &dyn Any = source.data_source().as_ref();
            source.is::<MemorySourceConfig>()
        })
}

/// What another stage wrote, or is to write.
fn is_shuffled(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let repartitioned = plan.downcast_ref::<RepartitionExec>();
    plan.is::<ShuffleReaderExec>()
        || plan.is::<UnresolvedShuffleExec>()
        || repartitioned.is_some_and(|plan| kind_of(plan.input()) == Some(Kind::Multiply))
}

/// Whether a plan is what an operator may stand over.
type Allowed = fn(&Arc<dyn ExecutionPlan>) -> bool;

fn refused(what: &str) -> DataFusionError {
    DataFusionError::Plan(format!("a plan that is not ours: {what}"))
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (kind, allowed): (_, Allowed) = match bytes {
            MULTIPLY => (Kind::Multiply, is_orders),
            PACK => (Kind::Pack, is_shuffled),
            _ => return self.decode_ballista(bytes, inputs, context, converter),
        };
        match inputs {
            [input] if allowed(input) => {
                Ok(Arc::new(Node::new(kind, input.clone(), self.site.clone())?))
            }
            _ => Err(refused("an operator over something else")),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match kind_of(&node) {
            Some(Kind::Multiply) => bytes.extend_from_slice(MULTIPLY),
            Some(Kind::Pack) => bytes.extend_from_slice(PACK),
            None => self.ballista.try_encode(node, bytes, converter)?,
        }
        Ok(())
    }
}

impl Codec {
    /// Reads from other stages, and writers over one of our operators.
    fn decode_ballista(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Ballista takes a writer's input without looking whether there is one.
        if inputs.iter().any(|input| kind_of(input).is_none()) {
            return Err(refused("a stage of something else"));
        }
        if inputs.is_empty() {
            return self.decode_reader(bytes, context, converter);
        }
        let plan = self
            .ballista
            .try_decode(bytes, inputs, context, converter)?;
        if plan.is::<ShuffleWriterExec>() || plan.is::<SortShuffleWriterExec>() {
            Ok(plan)
        } else {
            Err(refused(plan.name()))
        }
    }

    fn decode_reader(
        &self,
        bytes: &[u8],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use ballista_core::serde::protobuf::BallistaPhysicalPlanNode;
        use ballista_core::serde::protobuf::ballista_physical_plan_node::PhysicalPlanType;
        use prost::Message;
        let node = BallistaPhysicalPlanNode::decode(bytes);
        let node = node.map_err(|error| refused(&error.to_string()))?;
        match node.physical_plan_type {
            Some(PhysicalPlanType::ShuffleReader(_) | PhysicalPlanType::UnresolvedShuffle(_)) => {
                self.ballista.try_decode(bytes, &[], context, converter)
            }
            _ => Err(refused("a leaf of something else")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::PARTIALS;
    use ballista_core::JobId;
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion_proto::physical_plan::AsExecutionPlan;
    use datafusion_proto::protobuf::PhysicalPlanNode;

    fn orders() -> Arc<dyn ExecutionPlan> {
        let source = MemorySourceConfig::try_new(&[vec![]], ORDERS.clone(), None).unwrap();
        DataSourceExec::from_data_source(source)
    }

    fn written(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let job = JobId::new("job".to_owned());
        Arc::new(ShuffleWriterExec::try_new(job, 1, input, String::new()).unwrap())
    }

    /// A plan, there and back.
    fn travel(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let codec = Codec::default();
        let wire = PhysicalPlanNode::try_from_physical_plan(plan, &codec)?;
        wire.try_into_physical_plan(&TaskContext::default(), &codec)
    }

    #[test]
    fn a_plan_of_anything_else_is_refused() {
        let multiply = Arc::new(Node::new(Kind::Multiply, orders(), None).unwrap());
        let ours = travel(written(multiply.clone())).unwrap();
        assert!(kind_of(ours.children()[0]) == Some(Kind::Multiply));
        let empty: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(ORDERS.clone()));
        let partials: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(PARTIALS.clone()));
        let coalesced = Arc::new(CoalescePartitionsExec::new(multiply.clone()));
        let over = |kind, input| Arc::new(Node::new(kind, input, None).unwrap());
        let foreign: Vec<Arc<dyn ExecutionPlan>> = vec![
            written(orders()),
            written(empty.clone()),
            written(coalesced),
            over(Kind::Multiply, empty),
            over(Kind::Pack, partials),
            over(Kind::Pack, multiply),
            written(written(orders())),
        ];
        for plan in foreign {
            let name = format!("{plan:?}");
            let refused = travel(plan).err().unwrap_or_else(|| panic!("{name}"));
            assert!(refused.to_string().contains("not ours"), "{refused}");
        }
    }
}
