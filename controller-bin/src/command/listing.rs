//! What lists have in common.

use super::OutputArgs;
use crate::args::Args;

/// Which objects are listed, and how the list looks.
#[derive(Clone, Debug, clap::Args)]
pub struct ListingArgs {
    /// Only those of this namespace
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Selection")]
    pub namespace: Option<String>,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// How the list looks.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl ListingArgs {
    /// Whether something of a namespace is listed.
    pub(super) fn wants(&self, namespace: Option<&str>) -> bool {
        let wanted = self.namespace.as_deref();
        wanted.is_none_or(|wanted| namespace == Some(wanted))
    }
}
