"""Pictures of fields, densities, boundaries and samples; HTML pages."""
