"""Every event of the record, one class each: what it stores, how it is told, and how it is verified."""

from surelist.service.record.events.access import (
    SessionBegun,
    SettingsChanged,
    TokenChanged,
    TokenCreated,
    TokenRevoked,
)
from surelist.service.record.events.campaigns import (
    CampaignReviewed,
    CampaignScreened,
    CampaignStarted,
    CampaignStep,
    CampaignUpdated,
    CampaignWithdrawn,
)
from surelist.service.record.events.labellings import (
    LabellingCorrected,
    LabellingListed,
    LabellingStarted,
    LabellingTold,
)
from surelist.service.record.events.lists import (
    ListRemoved,
    NoteWritten,
    ReviewsClosed,
    ReviewsReceived,
    SelectionDescribed,
    SelectionMade,
)
from surelist.service.record.events.policies import (
    PolicyDescribed,
    PolicyRetired,
    PolicySaved,
    PolicyWithdrawn,
    RowsLooked,
)

Reviewable = SelectionMade | CampaignScreened | LabellingStarted

__all__ = [
    "CampaignReviewed", "CampaignScreened", "CampaignStarted", "CampaignStep", "CampaignUpdated",
    "CampaignWithdrawn", "LabellingCorrected", "LabellingListed", "LabellingStarted", "LabellingTold",
    "ListRemoved", "NoteWritten",
    "PolicyDescribed", "PolicyRetired", "PolicySaved", "PolicyWithdrawn", "Reviewable", "ReviewsClosed",
    "ReviewsReceived", "RowsLooked", "SelectionDescribed", "SelectionMade", "SessionBegun", "SettingsChanged",
    "TokenChanged", "TokenCreated", "TokenRevoked",
]  # fmt: skip
