// The answer to `status`, `audit` and the listing commands, as JSON: values turned into fields, nothing decided. Pure.
//
// What is in here is what the control socket's group may read: no subject, no key, nothing that was sealed (I7).
#pragma once

#include <functional>

#include "appliance/appliance_status.h"
#include "appliance/json.h"
#include "spool/spool.h"

namespace holdfast {

using TargetNames = std::function<std::string(TargetNumber)>;

Json status_answer(const ApplianceStatus& status);
Json audit_answer(const AuditReport& report);
Json summary_answer(const RecordSummary& record, const TargetNames& names);
Json quarantined_answer(const QuarantinedRecord& record, const TargetNames& names);
// This one is opened: for root and the service's user only.
Json opened_answer(const OpenedRecord& record, const TargetNames& names);

}  // namespace holdfast
