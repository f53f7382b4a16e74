// The tables of the work platform, of sessions, of builds, of the built-in agent, of terminals, of
// those who look at tasks, of what belongs to a user, of kept checkouts, what pauses need, how
// outputs and queues are found, links between rows, which server has what, the pull requests of
// sessions, and users' tokens for GitHub, for migrations.cc.
#pragma once

namespace caisson::store {

extern const char* const kWorkSchemaUp;
extern const char* const kWorkSchemaDown;
extern const char* const kSessionSchemaUp;
extern const char* const kSessionSchemaDown;
extern const char* const kBuildSchemaUp;
extern const char* const kBuildSchemaDown;
extern const char* const kLoopSchemaUp;
extern const char* const kLoopSchemaDown;
extern const char* const kTerminalSchemaUp;
extern const char* const kTerminalSchemaDown;
extern const char* const kReviewSchemaUp;
extern const char* const kReviewSchemaDown;
extern const char* const kPersonSchemaUp;
extern const char* const kPersonSchemaDown;
extern const char* const kCheckoutSchemaUp;
extern const char* const kCheckoutSchemaDown;
extern const char* const kPauseSchemaUp;
extern const char* const kPauseSchemaDown;
extern const char* const kIndexSchemaUp;
extern const char* const kIndexSchemaDown;
extern const char* const kLinkSchemaUp;
extern const char* const kLinkSchemaDown;
extern const char* const kNodeSchemaUp;
extern const char* const kNodeSchemaDown;
extern const char* const kPullSchemaUp;
extern const char* const kPullSchemaDown;
extern const char* const kTokenSchemaUp;
extern const char* const kTokenSchemaDown;

}  // namespace caisson::store
