#include "base/process/launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

using namespace shima;

namespace {

Environment with(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Launcher, SaysNothing) { EXPECT_FALSE(launched_on_one_node(with({}))); }

TEST(Launcher, AllRanksAreHere) {
  EXPECT_TRUE(launched_on_one_node(with({{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}})));
  EXPECT_TRUE(launched_on_one_node(
      with({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})));
}

TEST(Launcher, SomeRanksAreElsewhere) {
  EXPECT_FALSE(launched_on_one_node(with({{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}})));
  EXPECT_FALSE(launched_on_one_node(
      with({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})));
}

TEST(Launcher, OneOfTwoNumbersProvesNothing) {
  EXPECT_FALSE(launched_on_one_node(with({{"PMI_SIZE", "4"}})));
  EXPECT_FALSE(launched_on_one_node(with({{"MPI_LOCALNRANKS", "4"}})));
  EXPECT_FALSE(launched_on_one_node(with({{"PMI_SIZE", "x"}, {"MPI_LOCALNRANKS", "x"}})));
}

TEST(Launcher, OneInsideTheOther) {
  EXPECT_FALSE(launched_on_one_node(with({{"OMPI_COMM_WORLD_SIZE", "1"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                                          {"PMI_SIZE", "8"},
                                          {"MPI_LOCALNRANKS", "4"}})));
}

TEST(Launcher, Slurm) {
  std::map<std::string, std::string> step{
      {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_NODES", "1"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "8"}};
  EXPECT_TRUE(launched_on_one_node(with(step)));
  step["MPI_LOCALNRANKS"] = "4";  // Hydra, started in an interactive step
  EXPECT_FALSE(launched_on_one_node(with(step)));
  step.erase("MPI_LOCALNRANKS");
  step["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_FALSE(launched_on_one_node(with(step)));
}

TEST(Launcher, Number) {
  const auto number_with = [](std::map<std::string, std::string> variables) {
    const LauncherNumber number = launcher_number(with(std::move(variables)));
    return std::pair(number.rank, number.size);
  };
  EXPECT_EQ(number_with({}), std::pair(-1, -1));
  EXPECT_EQ(number_with({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), std::pair(2, 4));
  EXPECT_EQ(number_with({{"SLURM_PROCID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "1"},
                         {"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "5"}}),
            std::pair(3, 5));
  EXPECT_EQ(number_with({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}), std::pair(1, 2));
  EXPECT_EQ(number_with({{"PMIX_RANK", "1"}}), std::pair(1, -1));
  // mpiexec in a task of `shima dse run`.
  EXPECT_EQ(number_with({{"SHIMA_DSE_TASK", "2"}, {"SHIMA_DSE_TASKS", "6"}}), std::pair(2, 6));
  EXPECT_EQ(number_with({{"SHIMA_DSE_TASK", "2"},
                         {"SHIMA_DSE_TASKS", "6"},
                         {"PMI_RANK", "1"},
                         {"PMI_SIZE", "3"}}),
            std::pair(1, 3));
}

TEST(Launcher, Place) {
  const LauncherPlace pmix = launcher_place(with({{"PMIX_NAMESPACE", "a@1"}, {"PMIX_RANK", "3"}}));
  EXPECT_EQ(pmix.job, "a@1");
  EXPECT_EQ(pmix.rank, 3);
  EXPECT_EQ(launcher_place(with({{"PMI_RANK", "5"}})).rank, 5);
  EXPECT_EQ(launcher_place(with({})).rank, -1);
}

TEST(Launcher, NamesTheJob) {
  EXPECT_EQ(job_name(with({{"SHIMA_JOB", "a.1"}, {"PMIX_NAMESPACE", "b"}})), "a.1");
  EXPECT_EQ(job_name(with({{"SHIMA_JOB", "a.1"}, {"SHIMA_DSE_JOB", "c.2"}})), "c.2");
  EXPECT_EQ(job_name(with({{"PMIX_NAMESPACE", "b"}})), "b");
  EXPECT_EQ(job_name(with({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "3"}})), "slurm.7.3");
  EXPECT_TRUE(job_name(with({})).ends_with("." + std::to_string(::getpid())));
}

}  // namespace
